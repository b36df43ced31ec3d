"""What a Prometheus server is told: each app's own figures, read when it asks, the same from every process."""
