import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type GlibcDeps, nodeForEngine } from '../engine/glibc.ts'

const node = process.execPath
let cacheDir = ''

beforeEach(() => {
  cacheDir = join(mkdtempSync(join(tmpdir(), 'glibc-test-')), 'cache')
})

afterEach(() => rmSync(join(cacheDir, '..'), { recursive: true }))

/** A fake Debian system. Its apt and dpkg commands succeed unless `fail` returns an error. */
const system = ({ id = 'debian', fail = (_: string): string | undefined => undefined } = {}) => {
  const commands: string[] = []
  const written: string[] = []
  const run: GlibcDeps['run'] = async (file, args, cwd) => {
    const command = [basename(file), ...args].join(' ')
    commands.push(command)
    const failure = fail(command)
    if (failure) throw new Error(failure)
    if (file === 'cat') return `PRETTY_NAME="Some ${id} 1"\nID=${id}\nVERSION_CODENAME=now\n`
    if (args[0] === 'indextargets') {
      return 'now-security main http://archive.test/security/\nnow contrib http://archive.test/c/\nnow main http://archive.test/os/\n'
    }
    if (args.includes('update')) written.push(sourcesOf(args[2] ?? ''))
    if (args.includes('download')) {
      for (const name of ['libc6', 'libstdc++6', 'libgcc-s1'])
        writeFileSync(join(cwd ?? '', `${name}_1_amd64.deb`), name)
    }
    if (file === 'dpkg') {
      const to = join(args[2] ?? '', 'usr/lib/x86_64-linux-gnu')
      mkdirSync(join(to, 'gconv'), { recursive: true })
      if (args[1]?.includes('libc6_')) {
        for (const name of ['ld-linux-x86-64.so.2', 'libc.so.6', 'README']) writeFileSync(join(to, name), name)
      } else writeFileSync(join(to, `${basename(args[1] ?? '')}.so.6`), '')
    }
    return ''
  }
  return { run, commands, written }
}

const sourcesOf = (config: string) => readFileSync(join(config, '../sources.list'), 'utf8')

const nodeOn = (deps: Partial<GlibcDeps>) =>
  nodeForEngine({
    logger: { info: () => {} },
    signal: new AbortController().signal,
    platform: 'linux',
    arch: 'x64',
    glibc: '2.36',
    cacheDir,
    ...deps,
  })

describe('the Node command for the engine', () => {
  it('the Node command for the engine is Node itself if the C library of the system is new enough', async () => {
    for (const glibc of ['2.38', '2.41', '3.0']) expect(await nodeOn({ glibc })).toEqual({ file: node, args: [] })
    expect(await nodeOn({ platform: 'darwin', glibc: undefined })).toEqual({ file: node, args: [] })
    expect(existsSync(cacheDir)).toBe(false)
  })

  it('the Node command for the engine uses downloaded libraries on an older Debian, and the other downloaded files are removed', async () => {
    const { run, written } = system()
    const command = await nodeOn({ run })
    const libraries = join(cacheDir, 'borrowed-x64')
    expect(command).toEqual({
      file: join(libraries, 'ld-linux-x86-64.so.2'),
      args: ['--library-path', libraries, node],
    })
    expect(readdirSync(cacheDir)).toEqual(['borrowed-x64'])
    expect(readdirSync(libraries)).toContain('libc.so.6')
    expect(readdirSync(libraries)).not.toContain('README')
    expect(written).toEqual([
      expect.stringMatching(/^deb \[arch=amd64.*\] http:\/\/archive\.test\/os\/ trixie main\n$/),
    ])
  })

  it('the Node command for the engine uses the libraries of the next Ubuntu release on an older Ubuntu', async () => {
    const { run, written } = system({ id: 'ubuntu' })
    await nodeOn({ run })
    expect(written[0]).toContain(' noble main')
  })

  it('the Node command for the engine reuses the downloaded libraries at the next start', async () => {
    await nodeOn(system())
    const again = system()
    await nodeOn(again)
    expect(again.commands).toEqual([])
  })

  it('the Node command for the engine is the same in two processes that download the libraries at the same time', async () => {
    const [one, other] = await Promise.all([nodeOn(system()), nodeOn(system())])
    expect(one).toEqual(other)
    expect(readdirSync(cacheDir)).toEqual(['borrowed-x64'])
  })

  it.each([
    [
      'apt-get is missing',
      (command: string) => (command.startsWith('apt-get') ? 'spawn apt-get ENOENT' : undefined),
      'ENOENT',
    ],
    [
      'there is no network',
      (command: string) => (command.endsWith('update') ? 'Could not resolve' : undefined),
      'resolve',
    ],
    [
      'the libraries do not run',
      (command: string) => (command.startsWith('ld-') ? 'Exec format error' : undefined),
      'format',
    ],
  ])('nodeForEngine fails if %s, and leaves no partial files', async (_, fail, detail) => {
    const refused = nodeOn(system({ fail }))
    await expect(refused).rejects.toMatchObject({ reason: 'glibc' })
    for (const word of ['2.38', '2.36', 'apt-get', detail, 'MONGODB_URI']) await expect(refused).rejects.toThrow(word)
    expect(readdirSync(cacheDir)).toEqual([])
  })

  it('nodeForEngine keeps the fetched libraries in the folder `.cache` of the project', async () => {
    const { run } = system({ id: 'other' })
    const project = join(import.meta.dirname, '../..')
    await expect(nodeOn({ run, cacheDir: undefined, arch: 'arm64' })).rejects.toThrow(
      `into ${join(project, '.cache/glibc/borrowed-arm64')} did not work`,
    )
  })

  it('nodeForEngine fails on a Linux distribution for which no newer libraries are known', async () => {
    await expect(nodeOn(system({ id: 'other' }))).rejects.toThrow('Some other 1')
  })

  it('nodeForEngine fails on a system without glibc or with an unsupported processor, before it runs any command', async () => {
    const { run, commands } = system()
    await expect(nodeOn({ run, glibc: undefined })).rejects.toThrow(/not glibc.*MONGODB_URI/)
    await expect(nodeOn({ run, arch: 'riscv64' })).rejects.toThrow(/riscv64.*MONGODB_URI/)
    expect(commands).toEqual([])
  })
})
