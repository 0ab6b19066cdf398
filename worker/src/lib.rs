//! The Cloudflare host of aqlite.

use worker::{Context, Env, Request, Response, Result, ScheduleContext, ScheduledEvent, event};

#[event(fetch)]
async fn fetch(_request: Request, env: Env, _context: Context) -> Result<Response> {
    let rows = env.d1("DB")?.prepare("SELECT 1 AS one").all().await?.results::<serde_json::Value>()?;
    Response::from_json(&rows)
}

#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, _env: Env, _context: ScheduleContext) {}
