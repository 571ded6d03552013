# SPDX-License-Identifier: Apache-2.0
"""S3ML (arXiv 2010.06212): a verifier gets its keys only where it is attested."""
