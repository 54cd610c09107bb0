import { MongoClient } from 'mongodb'
import { createKeyring, parseSecretKeys } from '../../core/keys/keyring.ts'
import { createAccess } from '../../core/workspaces/access.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'

/** Returns a secret key in the form of `SECRET_KEYS`. Keys with one id differ by `byte`. */
export const secretKey = (kid: string, byte = 1) => `${kid}:${Buffer.alloc(32, byte).toString('base64')}`

/** Issues a service token, as `npm run make -- token` does. */
export const issueToken = (
  secretKeys: string,
  grant: { subject: string; scopes: string[]; lifetime?: number },
  now = Date.now,
) => createAccess(createKeyring(parseSecretKeys(secretKeys)), now).issue(grant)

export interface StartedPart {
  process: StartedProcess
  url: string
  metricsUrl: string
}

/** Starts parts in processes of their own, as in production, on one database of their own. */
export function productionParts() {
  const database = testDatabase()
  const shared = { NODE_ENV: 'production', LOG_LEVEL: 'info', METRICS_HOST: '127.0.0.1' }

  async function start(entry: string, portSetting: string, env: Record<string, string>, preload: string[] = []) {
    const [port, metricsPort] = [await freePort(), await freePort()]
    const url = `http://127.0.0.1:${port}`
    const ports = { [portSetting]: String(port), METRICS_PORT: String(metricsPort) }
    const process = await startProcess({ entry, env: { ...shared, ...ports, ...env }, preload })
    return { process, url, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics` }
  }

  const coreEnv = {
    MONGODB_URI: database.uri,
    MONGODB_DATABASE: database.name,
    SECRET_KEYS: secretKey('k1'),
    WORKSPACE_SESSION_SECRET: 'a-workspace-session-secret-of-48-characters-long',
  }

  return {
    database,
    core: (env: Record<string, string> = {}, preload: string[] = []): Promise<StartedPart> =>
      start('core/main.ts', 'CORE_PORT', { ...coreEnv, ...env }, preload),
    gateway: (env: Record<string, string>): Promise<StartedPart> => start('gateway/main.ts', 'GATEWAY_PORT', env),
    delivery: (env: Record<string, string>): Promise<StartedPart> => start('delivery/main.ts', 'DELIVERY_PORT', env),
    /** Runs the migration command. Returns its exit code and output. */
    async migrate(args: string[], env: Record<string, string> = {}) {
      const command = await startProcess({ entry: 'core/migrate.ts', args, env: { ...coreEnv, ...env } })
      return { ...(await command.exited), output: command.output() }
    },
    /** Changes the database behind the service's back. */
    async inDatabase<T>(run: (db: ReturnType<MongoClient['db']>) => Promise<T>): Promise<T> {
      const client = new MongoClient(database.uri)
      return run(client.db(database.name)).finally(() => client.close())
    },
  }
}

/** Status of a GET request, and how long it took in milliseconds. */
export async function timedStatus(url: string): Promise<{ status: number; ms: number }> {
  const start = performance.now()
  const status = await fetch(url).then(
    (answer) => answer.text().then(() => answer.status),
    () => 0,
  )
  return { status, ms: performance.now() - start }
}
