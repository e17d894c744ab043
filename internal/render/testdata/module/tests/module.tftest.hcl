run "plans" {}
