package openstack

import "net/http"

// serveStorage serves Glance's and Cinder's APIs.
func (s *services) serveStorage() {
	s.images = &collection{many: "images"}
	s.volumes = &collection{one: "volume", many: "volumes", made: s.makeVolume, removed: func(volume object) error {
		if volume["status"] != "available" {
			return badRequest("Invalid volume: Volume status must be available or error.")
		}
		return nil
	}}
	s.serve("/image/v2/images", s.images)
	volumes := "/volume/v3/{project}/volumes"
	s.handle("GET "+volumes+"/detail", func(r *http.Request) (int, any, error) {
		return http.StatusOK, map[string]any{"volumes": s.volumes.search(r)}, nil
	})
	s.serve(volumes, s.volumes)
}

func (s *services) makeVolume(_ *http.Request, volume object) error {
	if image := volume.text("imageRef"); image != "" && s.images.get(image) == nil {
		return badRequest("Invalid image identifier or unable to access requested image.")
	}
	for field, value := range map[string]any{
		"status": "available", "volume_type": "__DEFAULT__", "availability_zone": "nova", "metadata": map[string]any{},
	} {
		if volume[field] == nil || volume[field] == "" {
			volume[field] = value
		}
	}
	volume["attachments"], volume["bootable"] = []any{}, "false"
	return nil
}
