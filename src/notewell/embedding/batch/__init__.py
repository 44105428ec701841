"""Embeds large amounts of text through providers' batch jobs, which outlive the process and cost less."""
