import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Logger } from 'pino'
import { EngineError } from './engine-place.ts'

/** Version of glibc that the engine's binary needs. */
const neededVersion = '2.38'
const stepTimeoutMs = 120_000
const abandonedAfterMs = 10 * 60_000
const packages = ['libc6', 'libstdc++6', 'libgcc-s1']

/** Codename of the release with new enough libraries, by the `ID` in /etc/os-release. */
const newerSuites: Record<string, string> = { debian: 'trixie', ubuntu: 'noble' }

const machines: Partial<Record<string, Machine>> = {
  x64: { triple: 'x86_64-linux-gnu', loader: 'ld-linux-x86-64.so.2' },
  arm64: { triple: 'aarch64-linux-gnu', loader: 'ld-linux-aarch64.so.1' },
}

/** A command that starts Node. Arguments for Node are appended. */
export type NodeCommand = { file: string; args: string[] }

export type GlibcDeps = {
  logger: Pick<Logger, 'info'>
  signal: AbortSignal
  /** Folder that keeps the fetched libraries between runs. */
  cacheDir?: string
  /** Only tests set this and the following fields. */
  platform?: NodeJS.Platform
  arch?: string
  /** Version of the C library. Undefined if it is not glibc. */
  glibc?: string
  run?: Run
}

type Run = (file: string, args: string[], cwd?: string) => Promise<string>

type Machine = { triple: string; loader: string }

/**
 * Returns the command that starts Node so that the engine finds glibc 2.38: Node itself or, on older Debian and
 * Ubuntu, the loader and libraries of their next release. Apt downloads them once into a folder of the project and
 * checks their signatures. The system is not changed. Errors: `EngineError`.
 */
export const nodeForEngine = async (deps: GlibcDeps): Promise<NodeCommand> => {
  const { platform = process.platform, arch = process.arch, logger } = deps
  const glibc = 'glibc' in deps ? deps.glibc : runningGlibc()
  if (platform !== 'linux' || isEnough(glibc)) return { file: process.execPath, args: [] }
  const machine = machines[arch]
  if (glibc === undefined || machine === undefined) {
    const found = glibc === undefined ? 'a C library that is not glibc' : `a ${arch} processor`
    throw new EngineError(
      'glibc',
      `The embedded MongoDB engine needs glibc 2.38 on x64 or arm64, and this is ${found}.`,
    )
  }

  const run = deps.run ?? runWith(deps.signal)
  const libraries = join(deps.cacheDir ?? join(import.meta.dirname, '../../.cache/glibc'), `borrowed-${arch}`)
  const borrowed = {
    file: join(libraries, machine.loader),
    args: ['--library-path', libraries, process.execPath],
  }
  if (existsSync(borrowed.file)) return borrowed
  logger.info({ glibc, libraries }, 'fetching a newer C library for the embedded MongoDB engine; later starts reuse it')
  try {
    await borrow(libraries, arch, machine, run)
  } catch (error) {
    deps.signal.throwIfAborted()
    const why = error instanceof Error ? error.message.trim() : String(error)
    throw new EngineError(
      'glibc',
      `The embedded MongoDB engine needs glibc 2.38, this system has ${glibc}, and fetching a private copy with apt-get ` +
        `into ${libraries} did not work (${why}).`,
      { cause: error },
    )
  }
  return borrowed
}

const borrow = async (libraries: string, arch: string, machine: Machine, run: Run) => {
  const cache = join(libraries, '..')
  await mkdir(cache, { recursive: true })
  await clearAbandoned(cache)
  const work = await mkdtemp(join(cache, 'work-'))
  try {
    const unpacked = await fetchPackages(work, arch, run)
    const ready = await gatherLibraries(work, unpacked, machine.triple)
    await run(join(ready, machine.loader), ['--library-path', ready, process.execPath, '--version'])
    await rename(ready, libraries).catch((error) => {
      // Another process may have stored an equivalent copy first.
      if (!existsSync(join(libraries, machine.loader))) throw error
    })
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Downloads packages and unpacks them without installing. Needs no root. */
const fetchPackages = async (work: string, arch: string, run: Run) => {
  const config = join(work, 'apt.conf')
  await mkdir(join(work, 'state/lists/partial'), { recursive: true })
  await mkdir(join(work, 'cache/archives/partial'), { recursive: true })
  await writeFile(join(work, 'state/status'), '')
  await writeFile(join(work, 'sources.list'), await newerSource(arch, run))
  await writeFile(config, privateConfig(work))
  await run('apt-get', ['-q', '-c', config, 'update'])
  // apt downloads into its working folder.
  await run('apt-get', ['-q', '-c', config, 'download', ...packages], work)
  const unpacked = join(work, 'unpacked')
  for (const name of await readdir(work)) {
    if (name.endsWith('.deb')) await run('dpkg', ['-x', join(work, name), unpacked])
  }
  return unpacked
}

/** Apt reads it after the host's configuration, so the host's proxies apply, but not its hooks, pins and sources. */
const privateConfig = (work: string) => `#clear APT::Update;
#clear Acquire::Languages;
Acquire::Languages "none";
APT::Default-Release "";
APT::Sandbox::User "";
Dir::Cache "${work}/cache";
Dir::State "${work}/state";
Dir::State::Lists "${work}/state/lists";
Dir::State::Status "${work}/state/status";
Dir::Etc::SourceList "${work}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
`

/** Returns the apt source for the next release, in the archive that this system uses. */
const newerSource = async (arch: string, run: Run) => {
  const release = Object.fromEntries(
    (await run('cat', ['/etc/os-release'])).split('\n').map((line) => line.replaceAll('"', '').split('=', 2)),
  )
  const suite = newerSuites[release.ID]
  if (suite === undefined) throw new Error(`no newer release is known for ${release.PRETTY_NAME ?? 'this system'}`)
  const format = ['--no-release-info', '--format', '$(RELEASE) $(COMPONENT) $(REPO_URI)']
  const targets = (await run('apt-get', ['indextargets', ...format, 'Created-By: Packages'])).split('\n')
  const [, , archive] = targets.find((line) => line.startsWith(`${release.VERSION_CODENAME} main `))?.split(' ') ?? []
  if (archive === undefined) throw new Error(`apt has no source for ${release.VERSION_CODENAME} main`)
  const keyring = `/usr/share/keyrings/${release.ID}-archive-keyring.gpg`
  const signedBy = existsSync(keyring) ? ` signed-by=${keyring}` : ''
  return `deb [arch=${arch === 'x64' ? 'amd64' : arch}${signedBy}] ${archive} ${suite} main\n`
}

const gatherLibraries = async (work: string, unpacked: string, triple: string) => {
  const ready = join(work, 'ready')
  await mkdir(ready)
  for (const dir of [join(unpacked, 'lib', triple), join(unpacked, 'usr/lib', triple)]) {
    if (!existsSync(dir)) continue
    for (const name of await readdir(dir)) {
      if (/\.so(\.|$)/.test(name)) await rename(join(dir, name), join(ready, name))
    }
  }
  return ready
}

/** Removes files of killed processes. */
const clearAbandoned = async (cache: string) => {
  for (const name of await readdir(cache)) {
    const path = join(cache, name)
    const age = Date.now() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now())
    if (name.startsWith('work-') && age > abandonedAfterMs) await rm(path, { recursive: true, force: true })
  }
}

const runWith =
  (signal: AbortSignal): Run =>
  async (file, args, cwd) => {
    const options = { signal, cwd, timeout: stepTimeoutMs, maxBuffer: 16 * 1024 * 1024 }
    const { stdout } = await promisify(execFile)(file, args, options)
    return stdout
  }

const isEnough = (version: string | undefined) =>
  version !== undefined && version.localeCompare(neededVersion, 'en', { numeric: true }) >= 0

const runningGlibc = () => {
  if (process.platform !== 'linux') return undefined
  const report = process.report as typeof process.report & { excludeNetwork: boolean }
  // The report would resolve the names of network interfaces, which can take seconds.
  const { excludeNetwork } = report
  report.excludeNetwork = true
  const { header } = report.getReport() as { header: { glibcVersionRuntime?: string } }
  report.excludeNetwork = excludeNetwork
  return header.glibcVersionRuntime
}
