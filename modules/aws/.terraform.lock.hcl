provider "registry.opentofu.org/hashicorp/aws" {
  version     = "6.25.0"
  constraints = "6.25.0"
  hashes = [
    "h1:3E+87JUqfObP3vIjmk0xEE99GKoYhMzVZjbWiTvXVbI=",
    "h1:O0Xf1CDtMaKXCfShx4LypjMDfu9giOS98pVIiqJYllo=",
    "h1:cGns992yyrMXWRHpnX4rhWIL1ztMQyxmEGGWzAikqf4=",
    "h1:zbO1N866kMwO5FVS9BJiGwMhqgZiS+C9mrNXbRWbj4g=",
    "zh:02185f69b713b988622c4ccf987bf2b9ad74adbbf7535d0d9268b8e0ec642616",
    "zh:114080dc48cdd11e372d59de456b3b1be562dcd8b4bc3b66b70c589697f3bcb7",
    "zh:3e1894fff90dc70d1ef68f6274ca1091d90b64ece688b32defc414eda56c4b7f",
    "zh:a95b2b6d7fbd3321d8541d6bbc47a67652463f7a629a482ecec5e9221314069c",
  ]
}

provider "registry.terraform.io/hashicorp/aws" {
  version     = "6.25.0"
  constraints = "6.25.0"
}
