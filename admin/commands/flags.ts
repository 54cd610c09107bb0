import type { DescMessage, DescMethodUnary } from '@bufbuild/protobuf'
import {
  type Command,
  callCore,
  command,
  type Flag,
  type FlagsOf,
  must,
  number,
  text,
  UsageError,
  whether,
} from '../command.ts'

export const workspace = must(text('the workspace’s id or name', 'workspaceId'))
export const page = text('`nextPageToken` of the previous page', 'pageToken')
export const overlap = number('seconds; default 24 hours', 'overlapSeconds')
export const name = text('a name for the team, at most 80 characters', 'name')
export const changedName = { ...name, description: 'a name for the team; an empty text removes it' }
export const siteKey = must(text('the public site key'))

export const yes = whether('required, because it cannot be undone')

/** Defines a command that deletes something. Without `--yes` it deletes nothing. */
export const deletion = <const F extends Record<string, Flag>, I extends DescMessage>(
  method: DescMethodUnary<I>,
  flags: FlagsOf<I, F>,
): Command =>
  command<Record<string, Flag>>({ ...flags, yes }, async ({ transport }, values) => {
    if (!values.yes) throw new UsageError('a deletion cannot be undone; confirm with --yes')
    await callCore(transport, method, values)
    return { deleted: true }
  })
