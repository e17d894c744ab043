resource "example_instance" "this" {
  name      = var.machine.name
  user_data = var.user_data
}
