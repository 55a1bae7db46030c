"""Instructions as data: blocks built by calls, ordered for a core, given registers, written as GNU assembly."""
