"""An app of the tests' site: workloads that are harder than the example's."""
