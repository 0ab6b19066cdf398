//! The Cloudflare host of aqlite.
