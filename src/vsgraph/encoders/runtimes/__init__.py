"""What runs a model: OpenVINO, ONNX Runtime, torch."""
