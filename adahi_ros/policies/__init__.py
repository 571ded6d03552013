# SPDX-License-Identifier: Apache-2.0
"""Policies that propose actions: the interface, and how each kind is found by name.

A robot that runs exported policies needs no torch: it is imported only by the backends that use it.
"""
