//go:build !race

package webhooks

const slowdown = 1
