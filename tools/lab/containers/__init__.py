"""The containers of compose.yaml on a real engine, by the steps of docs/deployment.md: `python -m lab containers`."""
