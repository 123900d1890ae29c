"""Namespaces (D12) on SQLite: the cases of namespace_cases.py."""
import unittest

from harness import ApiTest
from namespace_cases import NamespaceCases


class Namespaces(NamespaceCases, ApiTest):
    pass


if __name__ == "__main__":
    unittest.main()
