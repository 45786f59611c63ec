"""Each rank on a host of its own, over TCP: the same bits; and a slow link is named."""
import json
import sys
import unittest

import network_hosts
from mpi_job import JobTest, skip_without_mpi
from program import SKIPPED

RANKS = 3
LIMITED = 1  # the host that the slow link leaves
COSTS = ("sent_bytes", "sent_messages", "received_bytes", "peak_bytes", "pairs")


class HostsTest(JobTest):
    def setUp(self):
        super().setUp()
        self.hosts = network_hosts.Hosts(self.folder, RANKS)
        self.addCleanup(self.hosts.remove)
        # Little to compute, and 1 MiB of K and V a chunk: two of them over 20 Mbit/s take 0.84 s.
        self.source = self.tensors(heads=4, kv_heads=4, tokens=64 * RANKS, dim=512)

    def run_on_hosts(self):
        output, report = self.folder / "hosts.safetensors", self.folder / "hosts.json"
        job = self.job(RANKS, "--input", self.source, "--output", output, "--json", report,
                       launcher=self.hosts.launcher(), before=self.hosts.on_first(), timeout=200)
        self.assertEqual(job.code, 0, job.said())
        return job, output.read_bytes(), json.loads(report.read_text())

    def test_hosts_give_the_bits_of_threads_and_every_byte_crosses_the_network(self):
        output, report = self.folder / "threads.safetensors", self.folder / "threads.json"
        self.succeeds("run", "optimized", "--ranks", RANKS, "--input", self.source, "--output",
                      output, "--json", report)
        before = self.hosts.sent_bytes()
        _, bits, on_hosts = self.run_on_hosts()
        self.assertEqual(bits, output.read_bytes())
        by_threads = json.loads(report.read_text())
        for rank, crossed in enumerate(self.hosts.sent_bytes()):
            here, there = on_hosts["ranks"][rank], by_threads["ranks"][rank]
            there["pairs"] = sum(visit["pairs"] for visit in there["visits"])
            self.assertEqual({name: here[name] for name in COSTS},
                             {name: there[name] for name in COSTS})
            payload = (RANKS - 1) * 2 * 4 * 64 * 512 * 4
            self.assertGreaterEqual(here["sent_bytes"], payload)
            self.assertGreaterEqual(crossed - before[rank], payload)

    def test_a_slow_link_is_named_and_without_one_nobody_is(self):
        for _ in range(5):  # a machine that is busy with something else may hold up any link
            job, _, report = self.run_on_hosts()
            if report["slow_link"] is None:
                break
        self.assertIsNone(report["slow_link"], job.out)
        self.assertNotIn("slow link", job.out)

        self.hosts.limit(LIMITED)
        job, _, report = self.run_on_hosts()
        to = (LIMITED + 1) % RANKS
        slow = report["slow_link"]
        self.assertIsNotNone(slow, report["links"])
        self.assertEqual((slow["from"], slow["to"]), (LIMITED, to), report["links"])
        self.assertLess(slow["bytes_per_second"], 2 * 20e6 / 8, report["links"])
        self.assertIn(f"slow link  rank {LIMITED} to rank {to}: ", job.out)


if __name__ == "__main__":
    skip_without_mpi()
    reason = network_hosts.why_not()
    if reason:
        print("SKIPPED:", reason)
        sys.exit(SKIPPED)
    unittest.main()
