import { type PgPool, requirePeer } from '../../peers.ts'
import { sendWebhook, type WebhookJob } from '../webhook.ts'

/** Returns a function that sends a webhook and inserts a row about the attempt. */
export async function loggedSends(connectionString: string) {
  const { Pool } = requirePeer<PgPool>('pg')
  const pool = new Pool({ connectionString, max: 10 })
  await pool.query(
    'create table if not exists attempts (delivery text not null, number int not null, status int not null, duration_ms int not null, at timestamptz not null default now(), primary key (delivery, number))',
  )
  const text = 'insert into attempts (delivery, number, status, duration_ms) values ($1, $2, $3, $4)'
  return async (job: WebhookJob, number: number): Promise<void> => {
    const { status, durationMs } = await sendWebhook(job)
    await pool.query({ name: 'attempt', text, values: [job.deliveryId, number, status, durationMs] })
  }
}
