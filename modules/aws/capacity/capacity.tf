# Linked into a run's folder only to read the size of an instance type that capacity.yaml lacks.
data "aws_ec2_instance_type" "capacity" {
  instance_type = var.provider_spec.instanceType
}

output "capacity" {
  description = "What the instance type offers."
  value = {
    cpu          = data.aws_ec2_instance_type.capacity.default_vcpus
    memory_mib   = data.aws_ec2_instance_type.capacity.memory_size
    gpu          = sum(concat([0], [for gpu in lookup(data.aws_ec2_instance_type.capacity, "gpus", []) : gpu.count]))
    architecture = contains(data.aws_ec2_instance_type.capacity.supported_architectures, "arm64") ? "arm64" : "amd64"
  }
}
