"""How good labels are: measures, evaluations, comparisons, sweeps."""
