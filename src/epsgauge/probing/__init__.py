"""What the accountant assumes, tested: noise, sensitivity, sampling, steps."""
