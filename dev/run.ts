// Runs a command of a group: `npm run make -- errors`. If none has the name, the default command gets all arguments.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { groups } from './command-groups.ts'

const [group = '', name = '', ...rest] = process.argv.slice(2)
const commands = groups[group] ?? {}
const isNamed = name !== 'default' && Object.hasOwn(commands, name)
const programs = isNamed ? commands[name] : commands.default
if (programs === undefined) {
  console.error(`npm run ${group} -- ${Object.keys(commands).join(' | ')}`)
  process.exit(2)
}
const options = isNamed ? rest : process.argv.slice(3)
for (const program of programs) {
  const code = await run([...program, ...options])
  if (code !== 0) process.exit(code)
}

function run(args: string[]): Promise<number> {
  const child = spawn(process.execPath, args, { cwd: join(import.meta.dirname, '..'), stdio: 'inherit' })
  // Ctrl-C reaches the child too, which stops by itself. So this process waits for it.
  const ignore = () => {}
  const forward = () => void child.kill('SIGTERM')
  process.on('SIGINT', ignore).on('SIGTERM', forward)
  return new Promise((resolve) => {
    child.on('error', () => resolve(1))
    child.on('exit', (code) => {
      process.off('SIGINT', ignore).off('SIGTERM', forward)
      resolve(code ?? 1)
    })
  })
}
