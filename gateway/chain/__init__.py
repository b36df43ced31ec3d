"""Node access, LSP-25 relay calls, LSP-6 permissions, fees and signing. It knows no model."""
