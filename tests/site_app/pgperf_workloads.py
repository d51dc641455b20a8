"""Loaded like any app's: see site_workloads."""

from tests.site_app import site_workloads

__all__ = ["site_workloads"]
