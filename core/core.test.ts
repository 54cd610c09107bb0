import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { readCoreConfig } from './config.ts'
import { startCore } from './core.ts'

const logger = pino({ level: 'silent' })
const production = {
  NODE_ENV: 'production',
  // A closed port: a start that gets this far fails with another message.
  MONGODB_URI: 'mongodb://127.0.0.1:1',
  MONGODB_TIMEOUT_MS: '100',
  MONGODB_START_TIMEOUT_MS: '0',
  SECRET_KEYS: `k1:${'A'.repeat(43)}`,
  WORKSPACE_SESSION_SECRET: 'a-secret-of-thirty-two-bytes-or-more',
}
const start = (env: NodeJS.ProcessEnv) => startCore(readCoreConfig({ ...production, ...env }), logger)

describe('a core in production', () => {
  it.each([
    ['SECRET_KEYS', /^SECRET_KEYS is missing: /],
    ['WORKSPACE_SESSION_SECRET', /^WORKSPACE_SESSION_SECRET and WORKSPACE_SESSION_JWKS_URL are missing: /],
  ])('does not start without %s', async (name, message) => {
    await expect(start({ [name]: '' })).rejects.toThrow(message)
  })

  it('accepts a key set instead of a secret', async () => {
    const env = { WORKSPACE_SESSION_SECRET: '', WORKSPACE_SESSION_JWKS_URL: 'https://login.example/keys' }
    await expect(start(env)).rejects.not.toThrow(/WORKSPACE_SESSION/)
  })

  it('does not start with a short secret, and does not print it', async () => {
    const started = start({ WORKSPACE_SESSION_SECRET: 'hunter2' })
    await expect(started).rejects.toThrow(/^WORKSPACE_SESSION_SECRET: number 1 of the list has fewer than 32 bytes$/)
  })
})

it.each(['http://login.example/keys', 'ftp://login.example/keys', 'https://user:hunter2@login.example/keys', 'keys'])(
  'rejects the key set URL %s without printing its password',
  (url) => {
    const read = () => readCoreConfig({ WORKSPACE_SESSION_JWKS_URL: url })
    expect(read).toThrow(/^WORKSPACE_SESSION_JWKS_URL is invalid: /)
    expect(read).not.toThrow('hunter2')
  },
)
