"""What the model is offered: tools by name, their texts, and the surface that has them all."""
