"""Load tests with true tails: an open loop on Locust's engine, with latencies from the scheduled instant in HDR histograms."""
