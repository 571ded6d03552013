# SPDX-License-Identifier: Apache-2.0
"""Proposes actions: what a policy is to everyone, and where each kind comes from by its name.

A robot that runs exported policies needs no torch: what does is imported when its backend is asked for.
"""
