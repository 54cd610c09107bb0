import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { readCoreConfig } from './config.ts'
import { startCore } from './start-core.ts'

const logger = pino({ level: 'silent' })
const production = {
  // Nothing listens on this port. So a core that accepts the settings then fails with a connection error.
  MONGODB_URI: 'mongodb://127.0.0.1:1',
  MONGODB_TIMEOUT_MS: '100',
  MONGODB_START_TIMEOUT_MS: '0',
  SECRET_KEYS: `k1:${'A'.repeat(43)}`,
  WORKSPACE_SESSION_SECRET: 'a-secret-of-thirty-two-bytes-or-more',
}
const start = (env: NodeJS.ProcessEnv) => startCore(readCoreConfig({ ...production, ...env }), { logger })

describe('a core', () => {
  it.each([
    ['MONGODB_URI', /^MONGODB_URI is missing: /],
    ['SECRET_KEYS', /^SECRET_KEYS is missing: /],
    ['WORKSPACE_SESSION_SECRET', /^WORKSPACE_SESSION_SECRET and WORKSPACE_SESSION_JWKS_URL are missing: /],
  ])('does not start without %s', async (name, message) => {
    await expect(start({ [name]: '' })).rejects.toThrow(message)
  })

  it('accepts a key set URL in place of a workspace session secret', async () => {
    const env = { WORKSPACE_SESSION_SECRET: '', WORKSPACE_SESSION_JWKS_URL: 'https://login.example/keys' }
    await expect(start(env)).rejects.not.toThrow(/WORKSPACE_SESSION/)
  })

  it('does not start with a session secret that is too short, and its error does not contain the secret', async () => {
    const started = start({ WORKSPACE_SESSION_SECRET: 'hunter2' })
    await expect(started).rejects.toThrow(/^WORKSPACE_SESSION_SECRET: number 1 of the list has fewer than 32 bytes$/)
  })
})

it.each(['http://login.example/keys', 'ftp://login.example/keys', 'https://user:hunter2@login.example/keys', 'keys'])(
  'the core settings reject the key set URL %s with an error that does not contain its password',
  (url) => {
    const read = () => readCoreConfig({ WORKSPACE_SESSION_JWKS_URL: url })
    expect(read).toThrow(/^WORKSPACE_SESSION_JWKS_URL is invalid: /)
    expect(read).not.toThrow('hunter2')
  },
)
