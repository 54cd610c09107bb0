import { execFile } from 'node:child_process'
import { access, chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, startProgram } from '../../test/support/processes.ts'
import { until } from '../../test/support/until.ts'
import { scratchFolder } from '../measure.ts'
import { streamCount } from './message-stores.ts'
import { giveTo, startPostgres } from './programs.ts'

const run = promisify(execFile)
const program = '/usr/sbin/ejabberdctl'
const schema = '/usr/share/ejabberd/sql/pg.new.sql'

/** Starts ejabberd with its archive in PostgreSQL. Throws if it is not installed, or if this user may not start it. */
export async function startEjabberd() {
  await access(program).catch(() => {
    throw new Error('ejabberd is not installed (Debian: apt-get install ejabberd erlang-p1-pgsql)')
  })
  if (process.getuid?.() !== 0) throw new Error('Debian starts ejabberd for root only')
  const { running: postgres, uri } = await startPostgres()
  await run('psql', ['-q', '-f', schema, uri])
  const folder = await scratchFolder('ejabberd')
  const port = await freePort()
  await writeFile(join(folder, 'ejabberd.yml'), configuration(port, Number(new URL(uri).port)))
  await writeFile(join(folder, 'inetrc'), '{lookup, [file, native]}.')
  await giveTo('ejabberd', [folder, join(folder, 'ejabberd.yml'), join(folder, 'inetrc')])
  await chmod(folder, 0o755)
  const folders = ['--config-dir', folder, '--logs', folder, '--spool', folder]
  const node = ['--node', `bench${port}@localhost`]
  const started = await startProgram(program, [...folders, ...node, 'foreground'], port)
  const server = {
    ...started,
    // ejabberdctl starts the server as another user, so signals do not reach the server.
    async stop() {
      await run(program, [...folders, ...node, 'stop']).catch(() => {})
      await started.stop()
    },
  }
  const register = async (user: string) => {
    const body = JSON.stringify({ user, host: 'localhost', password: 'bench' })
    return (await fetch(`http://127.0.0.1:${port}/api/register`, { method: 'POST', body })).ok
  }
  // ejabberd takes calls before it has connected to its database, and refuses them.
  for (let user = 0; user < streamCount; user += 1)
    await until(`ejabberd to register user${user}`, () => register(`user${user}`))
  return {
    port,
    server,
    store: [postgres],
    count: async () =>
      Number(
        (await run('psql', ['-At', '-c', "select count(*) from archive where username like 'user%'", uri])).stdout,
      ),
  }
}

const configuration = (port: number, databasePort: number) => `
hosts: [localhost]
loglevel: error
default_db: sql
new_sql_schema: true
sql_type: pgsql
sql_server: 127.0.0.1
sql_port: ${databasePort}
sql_database: postgres
sql_username: bench
sql_password: bench
sql_pool_size: 20
auth_method: sql
listen:
  - port: ${port}
    ip: 127.0.0.1
    module: ejabberd_http
    request_handlers:
      /api: mod_http_api
api_permissions:
  bench:
    who: all
    what: "*"
modules:
  mod_admin_extra: {}
  mod_http_api: {}
  mod_offline:
    use_mam_for_storage: true
  mod_mam:
    default: always
    assume_mam_usage: true
`
