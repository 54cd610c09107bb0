// Checks that every command exists that a document, a log line, an error message or a file of a deployment names.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import summaries from '../../admin/help.json' with { type: 'json' }
import { groups as administration } from '../../admin/run-admin.ts'
import { parts } from '../../bench/parts.ts'
import { groups } from '../../dev/command-groups.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const exclude = ['**/node_modules/**', '**/{dist,gen,test,released}/**', '**/*.test.*', 'test/**']
const find = (pattern: string) => globSync(pattern, { cwd: root, exclude })

const documents = [...find('*.md'), ...find('{docs,docs/**,core-client,webhooks,widget,admin,console,deploy/**}/*.md')]
const sources = [
  ...find(
    '{admin,browser,console,contract,core,core-client,delivery,dev,gateway,platform,serve,webhooks,widget}/**/*.{ts,tsx,js,cjs,mjs}',
  ),
  ...find('proto/**/*.proto'),
  ...find('docs/examples/*'),
  ...find('deploy/**/*.*'),
  ...find('{Dockerfile,compose*.yaml,service.env.example,.github/workflows/*}'),
]

const scripts: Record<string, string> = JSON.parse(read('package.json')).scripts
/** Names that may follow `npm run <script> --`. */
const subcommands: Record<string, string[]> = {
  ...Object.fromEntries(Object.entries(groups).map(([script, commands]) => [script, Object.keys(commands)])),
  bench: [...Object.keys(groups.bench!), ...Object.keys(parts)],
}
const roles = [...read('serve/run.ts').matchAll(/^ {2}(?:async )?(\w+)(?:: |\()/gm)].map(([, role]) => role!)
const services = ['compose.yaml', 'compose.cluster.yaml', 'deploy/compose/bot.yaml'].flatMap((path) =>
  Object.keys(parse(read(path), { merge: true }).services),
)

/**
 * Returns the source code of the TypeScript programs that a script runs, with the files that they import
 * directly. Returns an empty text if the script runs no such program.
 */
function sourceOf(script: string, name: string): string {
  const group = groups[script]
  const programs = group
    ? (group[name] ?? group.default ?? []).map(([program]) => program!)
    : (scripts[script]!.match(/(?<= )[\w/-]+\.ts/g) ?? [])
  return programs
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => {
      const source = read(path)
      const imported = [...source.matchAll(/from '(\.[^']+\.ts)'/g)].map(([, to = '']) => read(join(dirname(path), to)))
      return [source, ...imported]
    })
    .join('\n')
}

/** Returns the flags that the programs of a script do not define. */
function unknownFlags(script: string, args: string): string[] {
  const source = sourceOf(script, args.match(/^[a-z][\w-]*/)?.[0] ?? '')
  const flags = [...args.matchAll(/(?:^| )--([a-z][\w-]*)/g)].map(([, flag]) => flag!)
  return source === '' ? [] : flags.filter((flag) => !new RegExp(`\\b${flag}'?[:,\\]]`).test(source))
}

/** Returns what is wrong with the arguments of the administration command. */
function faultsOfAdmin(args: string): string[] {
  const [group = '', name = ''] = args.match(/^[a-z][a-z-]*|(?<=^[a-z][a-z-]* )[a-z][a-z-]*/g) ?? []
  if (group === '') return []
  const entry = (administration as Record<string, object>)[group] as Record<string, { flags?: object }> | undefined
  const command = (entry && 'run' in entry ? entry : entry?.[name]) as { flags?: object } | undefined
  if (!entry || (!command && name !== '')) return [`admin ${group} ${name}`.trim()]
  const known = ['json', 'key', 'help', ...Object.keys(command?.flags ?? {})]
  const named = [...args.matchAll(/--([a-z][\w-]*)/g)].map(([, flag]) => flag!)
  return command ? named.filter((flag) => !known.includes(flag)).map((flag) => `admin ${group} ${name} --${flag}`) : []
}

/** Returns the commands in a text that do not exist. A command ends with its line, its quote or its pipe. */
function unknownCommands(text: string): string[] {
  const commands = [
    ...text.replaceAll(/\\\n\s*/g, ' ').matchAll(/\bnpm run (?:-s |--silent )?(\w+(?::\w+)?)(?: -- ([^\n`'"|>;)]*))?/g),
  ]
  const byNpm = commands.flatMap(([command, script = '', args = '']) => {
    const [name = ''] = args.match(/^[a-z][\w-]*/) ?? []
    if (script === 'admin') return faultsOfAdmin(args)
    if (!Object.hasOwn(scripts, script) || (name !== '' && subcommands[script]?.includes(name) === false))
      return [command]
    return unknownFlags(script, args).map((flag) => `${script} ${name} --${flag}`)
  })
  // `chat` is a function of docs/one-server.md, `admin` one of docs/operating.md and a service of Compose.
  const direct = text.matchAll(
    /(?:(?:^|[`(] ?|\| )(?:chat )?|(?:run --rm|run\.ts|service-) ?)admin ([a-z][^\n`'"|>;)]*)/gm,
  )
  const quoted = text.matchAll(new RegExp(`\`((?:${Object.keys(administration).join('|')}) [a-z-][^\n\`\\\\]*)`, 'g'))
  const ofRoles = [...text.matchAll(/run\.ts (?!ts\b)([a-z]+)|(?:^|`)chat ([a-z]+)/gm)]
  const ofServices = [
    ...text.matchAll(
      /docker compose (?:-f \S+ )*(?:run|exec|logs|stop|start)(?: --[\w-]+(?: "[^"]*"| \d\S*)?)* ([\w-]+)/g,
    ),
  ]
  return [
    ...byNpm,
    ...ofServices.flatMap(([command, service]) => (services.includes(service!) ? [] : [command])),
    ...[...direct, ...quoted].flatMap(([, args = '']) => faultsOfAdmin(args)),
    ...ofRoles.flatMap(([, one, other]) => (roles.includes(one ?? other!) ? [] : [`role ${one ?? other}`])),
  ]
}

/** Returns the part of a document that is about this version: of the change log, its first section. */
const currentPart = (path: string) =>
  path === 'CHANGELOG.md' ? read(path).split('\n## ').slice(0, 2).join('\n## ') : read(path)

describe('the commands', () => {
  it('of the administration have a summary each, and no summary is left over', () => {
    const namesIn = (all: object) =>
      Object.entries(all).flatMap(([group, of]) => Object.keys(of).map((name) => `${group} ${name}`))
    expect(namesIn(summaries).sort()).toEqual(namesIn(administration).sort())
  })

  it('the documents name only existing commands', () => {
    const missing = documents.flatMap((path) => unknownCommands(currentPart(path)).map((each) => `${path}: ${each}`))
    expect(missing).toEqual([])
    expect(documents.length).toBeGreaterThan(25)
  })

  it('the sources and the files of deployments name only existing commands', () => {
    const missing = sources.flatMap((path) => unknownCommands(read(path)).map((each) => `${path}: ${each}`))
    expect(missing).toEqual([])
    expect(sources.length).toBeGreaterThan(500)
  })

  it.each([
    'npm run gone',
    'npm run verify -- gone',
    'npm run migrate -- --gone',
    'npm run make -- secrets --gone',
    'npm run chaos -- --gone 7',
    'docker compose exec gone node',
    'npm run admin -- visitors praise',
    'npm run admin -- explain --gone x',
    '`visitors praise --session ses_1`',
    'docker compose run --rm admin workspaces gone',
    'node serve/run.ts gone',
    '`chat gone`',
  ])('a command that does not exist is found (check of the test itself): %s', (text) => {
    expect(unknownCommands(text)).toHaveLength(1)
  })
})
