import type { MessageInitShape } from '@bufbuild/protobuf'
import type { ConnectRouter } from '@connectrpc/connect'
import {
  AcknowledgeScreenshotResponseSchema,
  CommandSchema,
  CommandService,
  type GetScreenshotResponseSchema,
  type UploadHeader,
  type UploadScreenshotRequest,
} from '#proto/command/v1/command_pb.js'
import {
  acknowledgeNavigation,
  acknowledgeScreenshot,
  cancelCommand,
  findCommand,
  listCommands,
  requestNavigation,
  requestScreenshot,
} from '../commands/commands.ts'
import { type Command, isFinal } from '../commands/model.ts'
import { openScreenshot, uploadScreenshot } from '../commands/screenshots.ts'
import type { Core } from '../core.ts'
import { invalid } from '../errors.ts'
import { callerOf, callerWorkspace } from '../transport/caller.ts'
import { ofVisitor, toProto, withoutEmpty } from './proto-values.ts'

export function commandService(router: ConnectRouter, core: Core) {
  router.service(CommandService, {
    async requestNavigation({ sessionId, url, label, clientOperationId }, context) {
      const request = { sessionId, url, ...withoutEmpty({ label, clientOperationId }) }
      const { content, replayed } = await requestNavigation(core, request, callerOf(context))
      return { command: toCommand(content), replayed }
    },

    async requestScreenshot({ sessionId, purpose, clientOperationId }, context) {
      const request = { sessionId, ...withoutEmpty({ purpose, clientOperationId }) }
      const { content, replayed } = await requestScreenshot(core, request, callerOf(context))
      return { command: toCommand(content), replayed }
    },

    async cancelCommand({ commandId }, context) {
      return { command: toCommand(await cancelCommand(core, commandId, callerOf(context))) }
    },

    async getCommand({ commandId }, context) {
      return { command: toCommand(await findCommand(core, commandId, callerWorkspace(context))) }
    },

    async listCommands({ sessionId, limit }, context) {
      const found = await listCommands(core, sessionId, limit, callerWorkspace(context))
      return { commands: found.map(toCommand) }
    },

    async *getScreenshot({ commandId }, context): AsyncGenerator<MessageInitShape<typeof GetScreenshotResponseSchema>> {
      const command = await findCommand(core, commandId, callerWorkspace(context))
      const { screenshot, chunks } = openScreenshot(core, command)
      const { contentType, byteLength, sha256 } = screenshot
      yield { part: { case: 'header', value: { commandId, contentType, byteLength, sha256 } } }
      for await (const chunk of chunks) yield { part: { case: 'chunk', value: chunk } }
    },

    async acknowledgeNavigation(request) {
      const { content, replayed } = await acknowledgeNavigation(core, ofVisitor(request))
      return { ...content, replayed }
    },

    async acknowledgeScreenshot(request) {
      const { content, replayed } = await acknowledgeScreenshot(core, ofVisitor(request))
      return toProto(AcknowledgeScreenshotResponseSchema, { ...content, requestId: content.commandId, replayed })
    },

    async uploadScreenshot(requests) {
      const parts = requests[Symbol.asyncIterator]()
      const first = await parts.next()
      if (first.done || first.value.part.case !== 'header') throw invalid('/header', 'required')
      const { content, replayed } = await uploadScreenshot(core, fromHeader(first.value.part.value), chunksOf(parts))
      return { ...content, replayed }
    },
  })
}

function fromHeader({ byteLength, ...header }: UploadHeader) {
  return { ...ofVisitor(header), byteLength: byteLength === undefined ? undefined : Number(byteLength) }
}

/** Yields the chunks. Errors: `ValidationFailed` if the end message is missing or states another length. */
async function* chunksOf(parts: AsyncIterator<UploadScreenshotRequest>) {
  let byteLength = 0
  for (let next = await parts.next(); !next.done; next = await parts.next()) {
    const { part } = next.value
    if (part.case === 'end' && Number(part.value.byteLength) === byteLength) return
    if (part.case !== 'chunk') throw invalid('/chunk', 'required')
    byteLength += part.value.length
    yield part.value
  }
  throw invalid('/end', 'required')
}

function toCommand(command: Command) {
  const { kind, state, url, label, purpose, transitions, screenshot } = command
  const outcome = transitions.findLast(({ by, state }) => by === 'visitor' && state !== 'uploaded')?.state
  return toProto(CommandSchema, {
    ...command,
    ...screenshot,
    ...{ url: url || undefined, label: label || undefined, purpose: purpose || undefined, outcome },
    resolvedAt: isFinal(kind, state) ? transitions.at(-1)?.at : undefined,
  })
}
