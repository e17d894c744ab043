// Package source fetches provider modules that are packed in archives: from an OCI registry, a web server or a file. A reference
// names the place and the digest of what is allowed to come from there, so that it does not matter who else can write to that place.
// docs/contracts/module.md says what archives and artifacts look like.
package source
