import { type Command, command, type Flag, type Values } from '../command.ts'
import type { Services } from '../services.ts'
import { UsageError } from '../usage.ts'

const yes = { type: 'boolean', description: 'required, because it cannot be undone' } as const

/**
 * Defines an administration command that deletes something. Without `--yes`, the command fails and
 * deletes nothing.
 */
export function deletion<const F extends Record<string, Flag>>({
  what,
  flags,
  run,
}: {
  what: string
  flags: F
  run: (services: Services, values: Values<F>) => Promise<unknown>
}): Command {
  return command<Record<string, Flag>>({
    summary: `Delete ${what}`,
    flags: { ...flags, yes },
    async run(services, values) {
      if (!(values as { yes?: boolean }).yes) throw new UsageError('a deletion cannot be undone; confirm with --yes')
      await run(services, values as unknown as Values<F>)
      return { deleted: true }
    },
  })
}
