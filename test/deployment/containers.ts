import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { childrenOf } from '../support/proc.ts'
import { type StartedProcess, startProgram } from '../support/processes.ts'
import { root } from './dockerfile.ts'

const execute = promisify(execFile)
const baseImage = 'localhost/node-base:latest'
const certificates = '/etc/ssl/certs/ca-certificates.crt'

interface RunOptions {
  entrypoint?: string[]
  args?: string[]
}

export interface Containers {
  /**
   * Builds the image of a target of the Dockerfile. Returns the folder with its files.
   *
   * @param version another checkout to build from, and a suffix for the names of its images
   */
  build(target: string, version?: { root: string; suffix: string }): Promise<string>
  /** Runs an image, by default with its own entry point and arguments. */
  run(target: string, env: Record<string, string>, options?: RunOptions): Promise<{ stdout: string }>
  /** Starts the process of an image, by default with its own arguments. Resolves when it listens on the port. */
  start(target: string, env: Record<string, string>, port: number, args?: string[]): Promise<StartedProcess>
  /** Returns a field of the configuration of an image. */
  inspect(target: string): Promise<{ User: string; Cmd?: string[]; Entrypoint?: string[]; Env: string[] }>
  remove(): Promise<void>
}

async function innermostOf(pid: number): Promise<number> {
  const [child] = await childrenOf(pid)
  return child === undefined ? pid : innermostOf(child)
}

/** Returns whether this machine can build and run images: root rights, `buildah` and `debootstrap`. */
export const canRunContainers = () =>
  process.getuid?.() === 0 &&
  execute('sh', ['-c', 'command -v buildah && command -v debootstrap']).then(
    () => true,
    () => false,
  )

/**
 * Builds images with `buildah`, on a base of Debian and this project's Node.js, because no image can
 * be pulled here. Containers use `chroot` and the network of the machine.
 */
export async function openContainers(): Promise<Containers> {
  const parent = await mkdtemp(join(tmpdir(), 'service-containers-'))
  const storage = ['--root', join(parent, 'images'), '--runroot', join(parent, 'run')]
  const buildah = async (...args: string[]) =>
    (await execute('buildah', [...storage, ...args], { cwd: root, maxBuffer: 64 * 1024 * 1024 })).stdout.trim()
  await buildBase()

  async function buildBase() {
    const system = join(parent, 'debian')
    await execute('debootstrap', ['--variant=minbase', '--include=ca-certificates', 'bookworm', system])
    const npm = join((await execute('npm', ['root', '--global'])).stdout.trim(), 'npm')
    const container = await buildah('from', 'scratch')
    const users =
      'ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm; useradd --uid 1000 --create-home node'
    for (const step of [
      ['add', container, system, '/'],
      ['add', container, process.execPath, '/usr/local/bin/node'],
      ['add', container, npm, '/usr/local/lib/node_modules/npm'],
      // The registry may have a certificate of this machine's own authority.
      ['add', container, certificates, certificates],
      ['config', '--env', `NODE_EXTRA_CA_CERTS=${certificates}`, container],
      ['run', '--isolation', 'chroot', container, '--', 'sh', '-c', users],
      ['commit', container, baseImage],
      ['rm', container],
    ])
      await buildah(...step)
  }

  async function commandOf(target: string, values: Record<string, string>, { entrypoint, args }: RunOptions) {
    const container = await buildah('from', '--pull-never', `service-${target}`)
    const { User, Cmd = [], Entrypoint = [] } = await inspect(target)
    const settings = Object.entries(values).flatMap(([name, value]) => ['--env', `${name}=${value}`])
    const inside = entrypoint ? entrypoint : [...Entrypoint, ...(args ?? Cmd)]
    return [...storage, 'run', '--isolation', 'chroot', '--user', User, ...settings, container, '--', ...inside]
  }

  const inspect: Containers['inspect'] = async (target) =>
    JSON.parse(await buildah('inspect', '--type', 'image', `service-${target}`)).Docker.config

  return {
    inspect,

    async build(target, { root: context, suffix } = { root, suffix: '' }) {
      const image = `service-${target}${suffix}`
      const base = ['--build-arg', `NODE_IMAGE=${baseImage}`]
      const options = ['--format', 'docker', '--layers', '--pull-never', ...base, '--target', target]
      await buildah('build', '--isolation', 'chroot', ...options, '--tag', image, context)
      const container = await buildah('from', '--pull-never', image)
      return join(await buildah('mount', container), 'service')
    },

    run: async (target, values, options = {}) => execute('buildah', await commandOf(target, values, options)),

    async start(target, values, port, args) {
      const running = await startProgram('buildah', await commandOf(target, values, { ...(args && { args }) }), port)
      // `buildah` does not pass signals on to the process in the container.
      const inside = await innermostOf(running.pid)
      return {
        ...running,
        async stop() {
          process.kill(inside, 'SIGTERM')
          await running.exited
        },
      }
    },

    async remove() {
      await buildah('rm', '--all')
      await buildah('rmi', '--all', '--force')
      await rm(parent, { recursive: true, force: true })
    },
  }
}
