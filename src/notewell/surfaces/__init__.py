"""What people and agents touch; surfaces use the public API only."""
