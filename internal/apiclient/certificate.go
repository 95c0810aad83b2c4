package apiclient

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"time"
)

// CertificateExpiry is when the client certificate of a kubeconfig ends; zero if it has none.
func CertificateExpiry(kubeconfig string) (time.Time, error) {
	config, _, err := readKubeconfig(kubeconfig)
	if err != nil || len(config.CertData) == 0 {
		return time.Time{}, err
	}
	for rest := config.CertData; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return time.Time{}, unusable(kubeconfig, errors.New("its client certificate is none"))
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}, unusable(kubeconfig, err)
		}
		return certificate.NotAfter, nil
	}
}
