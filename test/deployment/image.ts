import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, matchesGlob, relative } from 'node:path'
import { promisify } from 'node:util'
import { DockerfileParser } from 'dockerfile-ast'
import { atFileEnd } from '../support/clean-up.ts'

const run = promisify(execFile)
export const root = join(import.meta.dirname, '../..')

export const readDockerfile = () => readFile(join(root, 'Dockerfile'), 'utf8')

export interface Image {
  /** Folder with the files that the image has in `/service`. */
  folder: string
  env: Record<string, string>
  user: string
  command: string[]
}

/**
 * Executes the Dockerfile without Docker. Each stage is a folder in which the COPY and RUN
 * instructions are executed. The stage `pages` links the project's `node_modules` instead of
 * installing the same dependencies again.
 */
export async function buildImages(): Promise<Map<string, Image>> {
  const parent = await mkdtemp(join(tmpdir(), 'service-images-'))
  atFileEnd(() => rm(parent, { recursive: true, force: true }))
  const ignored = await readDockerignore()
  const images = new Map<string, Image>()
  let image: Image | undefined

  for (const instruction of DockerfileParser.parse(await readDockerfile()).getInstructions()) {
    const words = instruction.getArguments().map((argument) => argument.getValue())
    const rest = instruction.getArgumentsContent() ?? ''
    switch (instruction.getKeyword()) {
      case 'FROM': {
        const [base = '', , name = ''] = words
        const before = images.get(base)
        image = { user: 'root', command: [], ...before, env: { ...before?.env }, folder: join(parent, name) }
        if (before) await link(before.folder, image.folder)
        else await mkdir(image.folder)
        images.set(name, image)
        break
      }
      case 'ENV':
        Object.assign(image!.env, Object.fromEntries(words.map((word) => word.split('='))))
        break
      case 'USER':
        image!.user = rest
        break
      case 'COPY':
        await copy(image!, instruction.toString(), images, ignored)
        break
      case 'RUN':
        if (image!.folder.endsWith('pages') && rest.startsWith('npm ci')) {
          await symlink(join(root, 'node_modules'), join(image!.folder, 'node_modules'))
        } else await run('bash', ['-c', rest], { cwd: image!.folder, env: environment(image!) })
        break
      case 'CMD':
      case 'ENTRYPOINT':
        image!.command = JSON.parse(rest)
    }
  }
  return images
}

/**
 * Returns the environment of a container: the variables of the image, and `PATH` and `HOME` of this
 * process.
 */
export const environment = ({ env }: Pick<Image, 'env'>): Record<string, string> => ({
  PATH: `${join(process.execPath, '..')}:${process.env.PATH}`,
  HOME: process.env.HOME ?? '/root',
  ...env,
})

async function copy({ folder }: Image, line: string, images: Map<string, Image>, ignored: (path: string) => boolean) {
  const words = line.split(/\s+/).slice(1)
  const from = words[0]?.startsWith('--from=') ? words.shift()?.slice('--from='.length) : undefined
  const target = words.pop() ?? ''
  for (const source of words) {
    const origin = from ? join(images.get(from)!.folder, relative('/service', source)) : join(root, source)
    const isFile = (await stat(origin)).isFile()
    const place = isFile && target.endsWith('/') ? join(folder, target, basename(source)) : join(folder, target)
    await mkdir(dirname(place), { recursive: true })
    if (from) await link(origin, place)
    else await cp(origin, place, { recursive: true, filter: (path) => !ignored(relative(root, path)) })
  }
}

/**
 * Copies files as hard links. This is safe, because a stage never changes files of an earlier
 * stage.
 */
const link = (from: string, to: string) => run('cp', ['--archive', '--link', from, to])

/** Returns a function that checks whether `.dockerignore` excludes a path. */
async function readDockerignore(): Promise<(path: string) => boolean> {
  const lines = (await readFile(join(root, '.dockerignore'), 'utf8')).split('\n')
  const rules = lines.filter((line) => line !== '' && !line.startsWith('#'))
  const matches = (path: string, pattern: string) => matchesGlob(path, pattern) || matchesGlob(path, `${pattern}/**`)
  return (path) => {
    if (path === '') return false
    const decisive = rules.findLast((rule) => matches(path, rule.replace(/^!/, '')))
    const leadsTo = rules.some((rule) => rule.startsWith(`!${path}/`))
    return decisive !== undefined && !decisive.startsWith('!') && !(decisive === '*' && leadsTo)
  }
}
