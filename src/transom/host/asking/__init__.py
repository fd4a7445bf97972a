"""What is allowed, and what the user is asked: policy, approvals, grants, forms."""
