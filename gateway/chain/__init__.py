"""Node access and the LUKSO standards: LSP-25 relay calls, LSP-6 permissions, fees, signing. It knows no model."""
