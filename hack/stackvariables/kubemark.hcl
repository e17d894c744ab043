# How stacks/kubemark/variables.tf differs from modules/kubemark/variables.tf.
variable "provider_spec" {
  description = "The values of a PulumiMachineProviderSpec; the README explains each."
}
