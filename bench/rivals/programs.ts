import { execFile } from 'node:child_process'
import { access, chown, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, type StartedProcess, startProgram } from '../../test/support/processes.ts'
import { scratchFolder } from '../measure.ts'

const run = promisify(execFile)

/** Packages of the compared systems, installed on first use. The service itself does not need them. */
const versions = {
  bullmq: '6.7.0',
  pg: '8.23.1',
  'pg-boss': '12.38.0',
  'graphile-worker': '0.18.0',
  '@durable-streams/server': '0.3.7',
  '@durable-streams/client': '0.2.7',
  'socket.io': '4.8.4',
  'socket.io-client': '4.8.4',
  eventsource: '5.1.5',
  '@xmpp/client': '0.14.0',
}
type Package = keyof typeof versions
const folder = join(import.meta.dirname, '../../.cache/bench')
const wanted = `${JSON.stringify({ private: true, dependencies: versions }, null, 2)}\n`

/** Installs the packages with npm in `.cache/bench`. They use the project's own copy of ioredis. */
export async function installPeers(): Promise<void> {
  if ((await readFile(join(folder, 'installed'), 'utf8').catch(() => '')) === wanted) return
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), wanted)
  const quiet = ['--omit=peer', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  await run('npm', ['install', ...quiet], { cwd: folder }).catch((error: { stderr?: string }) => {
    throw new Error(`npm cannot fetch ${Object.keys(versions).join(', ')}: ${error.stderr?.split('\n')[0] ?? 'no npm'}`)
  })
  await writeFile(join(folder, 'installed'), wanted)
}

// biome-ignore lint/suspicious/noExplicitAny: the packages have types of their own, which the project does not install
export const requirePeer = (name: Package): any => createRequire(join(folder, 'package.json'))(name)

export const peerVersion = (name: Package): string => `${name} ${versions[name]}`

/** Starts PostgreSQL with its default settings, so each commit is synced. */
export async function startPostgres(): Promise<{ running: StartedProcess; uri: string }> {
  const packages = '/usr/lib/postgresql'
  const [version] = (await readdir(packages).catch(() => [])).toSorted().reverse()
  if (version === undefined) throw new Error('PostgreSQL is not installed (Debian: apt-get install postgresql)')
  const data = await scratchFolder('postgres')
  const port = await freePort()
  let through: string[] = []
  // PostgreSQL refuses to run as root.
  if (process.getuid?.() === 0) {
    const idOf = async (flag: '-u' | '-g') => Number((await run('id', [flag, 'postgres'])).stdout)
    const [uid, gid] = [await idOf('-u'), await idOf('-g')]
    await chown(data, uid, gid)
    through = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  }
  const command = (name: string, ...args: string[]) => [
    ...[...through, join(packages, version, 'bin', name)],
    ...['-D', join(data, 'data'), ...args],
  ]
  const [initdb = '', ...initArgs] = command('initdb', '-A', 'trust', '-U', 'bench', '-E', 'UTF8', '--no-locale')
  await run(initdb, initArgs)
  const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${data}`]
  const [server = '', ...args] = command('postgres', ...settings.flatMap((setting) => ['-c', setting]))
  return { running: await startProgram(server, args, port), uri: `postgres://bench@127.0.0.1:${port}/postgres` }
}

export async function startRedis(fsync: 'everysec' | 'always'): Promise<{ running: StartedProcess; port: number }> {
  await run('redis-server', ['--version']).catch(() => {
    throw new Error('redis-server is not installed (Debian: apt-get install redis-server)')
  })
  const port = await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', await scratchFolder('redis')]
  const persistence = ['--logfile', 'redis.log', '--appendonly', 'yes', '--appendfsync', fsync, '--save', '']
  return { running: await startProgram('redis-server', [...args, ...persistence], port), port }
}

const module = '/usr/lib/nginx/modules/ngx_nchan_module.so'

/** Starts nginx with nchan. Throws if it is not installed. */
export async function startNchan(connections: number): Promise<{ server: StartedProcess; port: number }> {
  await access(module).catch(() => {
    throw new Error('the Debian packages nginx and libnginx-mod-nchan are not installed')
  })
  const folder = await scratchFolder('nchan')
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  await writeFile(file, configuration(folder, port, connections))
  const args = ['-p', folder, '-e', join(folder, 'error.log'), '-c', file]
  return { server: await startProgram('nginx', args, port), port }
}

const configuration = (folder: string, port: number, files: number) => `
load_module ${module};
daemon off;
master_process off;
worker_processes 1;
worker_rlimit_nofile ${files};
pid ${folder}/nginx.pid;
error_log ${folder}/error.log crit;
events { worker_connections ${files}; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  client_body_buffer_size 32k;
  keepalive_requests 1000000;
  nchan_shared_memory_size 512m;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location ~ ^/sub/(.+)$ {
      nchan_subscriber eventsource;
      nchan_channel_id $1;
      nchan_subscriber_first_message newest;
      nchan_eventsource_ping_interval 15;
    }
    location ~ ^/pub/(.+)$ {
      nchan_publisher http;
      nchan_channel_id $1;
      nchan_message_buffer_length 400;
      nchan_message_timeout 1h;
    }
  }
}
`

const erlangLibraries = '/usr/lib/x86_64-linux-gnu'

/** Starts ejabberd with the accounts `visitor` and `agent`, whose password is `password`. Throws if it is not installed. */
export async function startEjabberd(): Promise<{ server: StartedProcess; port: number }> {
  const [found] = (await readdir(erlangLibraries).catch(() => [])).filter((name) => name.startsWith('ejabberd-'))
  if (!found) throw new Error('the Debian package ejabberd is not installed')
  const folder = await scratchFolder('ejabberd')
  const port = await freePort()
  const file = join(folder, 'ejabberd.yml')
  await writeFile(file, ejabberdConfiguration(port))
  const settings = [`ERL_LIBS=${erlangLibraries}`, `EJABBERD_CONFIG_PATH=${file}`, `EJABBERD_LOG_PATH=${folder}/log`]
  const accounts = ['visitor', 'agent'].map(
    (name) => `ok = ejabberd_auth:try_register(<<"${name}">>, <<"localhost">>, <<"password">>)`,
  )
  // The functions of `erl` run one after another, so the accounts are made when ejabberd has started.
  const functions = ['-s', 'ejabberd', '-eval', `${accounts.join(', ')}.`]
  const erl = ['erl', '-noinput', '-mnesia', 'dir', JSON.stringify(join(folder, 'mnesia')), ...functions]
  return { server: await startProgram('env', [...settings, ...erl], port), port }
}

const ejabberdConfiguration = (port: number) => `
loglevel: error
hosts: [localhost]
listen:
  - { port: ${port}, ip: 127.0.0.1, module: ejabberd_http, request_handlers: { /ws: ejabberd_http_ws } }
modules:
  mod_offline: {}
  mod_stream_mgmt: { resend_on_timeout: true }
`
