"""What is accepted as an array: DLPack made by hand, byte by byte."""
import ctypes
import unittest

import numpy as np

import ringlab

CPU, CUDA = 1, 2
INT, UINT, FLOAT, BFLOAT = 0, 1, 2, 4


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    """DLManagedTensor of DLPack 0.x."""

    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned of DLPack 1.x."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


READ_ONLY = 1
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Handmade:
    """Gives its memory through DLPack, with whatever is said of it."""

    def __init__(self, array, *, versioned=False, read_only=False, major=1, no_shape=False, **said):
        self.array, self.said, self.versioned, self.read_only = array, said, versioned, read_only
        self.major, self.no_shape, self.deleted = major, no_shape, 0
        self.delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.count_deletion)

    def count_deletion(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.said.get("device_type", CPU), 0

    def __dlpack__(self, **_):
        said = {"data": self.array.ctypes.data, "device_type": CPU, "ndim": self.array.ndim,
                "code": FLOAT, "bits": 8 * self.array.itemsize, "lanes": 1,
                "shape": self.array.shape, "strides": None, "byte_offset": 0} | self.said
        self.shape = (ctypes.c_int64 * len(said["shape"]))(*said["shape"])
        said["shape"] = None if self.no_shape else ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        if said["strides"] is not None:
            self.strides = (ctypes.c_int64 * len(said["strides"]))(*said["strides"])
            said["strides"] = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        tensor = DLTensor(**said)
        deleter = ctypes.cast(self.delete, ctypes.c_void_p).value
        if self.versioned:
            self.kept = Versioned(major=self.major, minor=1, flags=READ_ONLY * self.read_only,
                                  deleter=deleter, tensor=tensor)
            return new_capsule(ctypes.addressof(self.kept), b"dltensor_versioned", None)
        self.kept = Managed(tensor=tensor, deleter=deleter)
        return new_capsule(ctypes.addressof(self.kept), b"dltensor", None)


class HandmadeArrays(unittest.TestCase):
    def setUp(self):
        draw = np.random.default_rng(3).standard_normal
        self.q, self.k, self.v = (draw((1, 2, n, 3)).astype(np.float32) for n in (5, 7, 7))
        self.expected = ringlab.attention(self.q, self.k, self.v)

    def attention(self, k, subject="reference"):
        return ringlab.attention(self.q, k, self.v, subject=subject)

    def refused(self, pattern, **said):
        for versioned in (False, True):
            with self.assertRaisesRegex(ringlab.InputError, pattern):
                self.attention(Handmade(self.k, versioned=versioned, **said))

    def test_both_versions_and_read_only_memory_are_read(self):
        for handmade in (Handmade(self.k), Handmade(self.k, versioned=True),
                         Handmade(self.k, versioned=True, read_only=True)):
            np.testing.assert_array_equal(self.attention(handmade), self.expected)

    def test_strides_and_offsets_are_followed(self):
        buffer = np.full(1000, np.nan, np.float32)
        view = np.lib.stride_tricks.as_strided(buffer[100:], self.k.shape, (4, 400, -32, 4))
        with self.assertRaises(ValueError):  # the oracle sees the NaN that lies there
            self.attention(Handmade(buffer, shape=self.k.shape, ndim=4, strides=(1, 100, -8, 1),
                                    byte_offset=400))
        view[:] = self.k
        for subject in ("reference", "optimized"):
            got = self.attention(Handmade(buffer, shape=self.k.shape, ndim=4, strides=(1, 100, -8, 1),
                                          byte_offset=400), subject)
            np.testing.assert_array_equal(got, self.attention(self.k, subject))

    def test_the_deleter_is_called_once(self):
        for versioned in (False, True):
            handmade = Handmade(self.k, versioned=versioned)
            self.attention(handmade)
            self.assertEqual(handmade.deleted, 1)

    def test_what_cannot_be_read_at_all_is_refused_before_it_is(self):
        self.refused("^k: expected a shape, found a null pointer", no_shape=True)
        with self.assertRaisesRegex(ringlab.InputError, "^k: expected DLPack of version 1, found 2"):
            self.attention(Handmade(self.k, versioned=True, major=2, no_shape=True))

    def test_strides_over_one_element_do_not_count(self):
        huge = 2**62
        handmade = Handmade(self.k, strides=(huge, 21, 3, 1))
        for subject in ("reference", "optimized"):
            np.testing.assert_array_equal(self.attention(handmade, subject),
                                          self.attention(self.k, subject))

    def test_other_devices_are_refused(self):
        self.refused("^k: expected an array on the CPU", device_type=CUDA)

    def test_other_types_are_refused(self):
        self.refused("^k: expected float64.*found int32", code=INT)
        self.refused("^k: expected float64.*found float8", bits=8)
        self.refused("^k: expected float64.*found float128", bits=128)
        self.refused("^k: expected float64.*in 2 lanes", lanes=2)
        self.refused("^k: expected float64.*in 0 lanes", lanes=0)
        self.refused("^k: expected float64.*found bfloat32", code=BFLOAT, bits=32)
        self.refused("^k: expected float64.*found uint16", code=UINT, bits=16)
        self.refused("^k: expected float64.*found type32", code=200)

    def test_other_dimensions_are_refused(self):
        self.refused("^k: expected 4 dimensions", ndim=3, shape=(2, 7, 3))
        self.refused("^k: expected 4 dimensions", ndim=0, shape=())
        self.refused("^k: expected 4 dimensions", ndim=5, shape=(1, 1, 2, 7, 3))

    def test_extents_and_strides_beyond_memory_are_refused(self):
        self.refused("^k: expected extents", shape=(1, 2, -7, 3))
        self.refused("^k: expected extents", shape=(2**40, 2**40, 7, 3))
        self.refused("^k: expected strides", strides=(42, 2**62, 3, 1))
        self.refused("^k: expected strides", strides=(42, 21, -2**63, 1))
        self.refused("^k: expected strides", strides=(42, 2**60, 2**60, 2**60))
        self.refused("^k: expected strides", byte_offset=2**64 - 4)
        self.refused("^k: expected strides", strides=(42, -2**58, 3, 1))

    def test_memory_that_cannot_be_read_is_refused(self):
        self.refused("^k: expected data, found a null pointer", data=None)
        self.refused("^k: expected elements aligned to 4 bytes", byte_offset=2)

    def test_an_empty_array_needs_no_memory(self):
        empty = Handmade(self.k, data=None, shape=(1, 2, 0, 3))
        o = ringlab.attention(self.q, empty, self.v[:, :, :0])
        self.assertTrue((o == 0).all())


if __name__ == "__main__":
    unittest.main()
