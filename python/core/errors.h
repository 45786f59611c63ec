// ringlab's errors as Python exceptions.
#pragma once

namespace ringlab::python {

/// Registers a translation: an Error that leaves the module arrives as the class of
/// ringlab/_errors.py for its kind, with the same text. Once per module, while it is made.
void translate_errors();

}  // namespace ringlab::python
