import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter, HandlerContext } from '@connectrpc/connect'
import { ErasureState, PrivacyService, type Visitor } from '#proto/privacy/v1/privacy_pb.js'
import type { Core } from '../core.ts'
import { invalid } from '../errors.ts'
import { eraseVisitor, findErasure } from '../privacy/erasures.ts'
import type { Erasure, VisitorName } from '../privacy/model.ts'
import { exportVisitor, visitorOfSession, visitorOfSubject } from '../privacy/visitor-data.ts'
import { callerOf, requiredWorkspace } from '../transport/caller.ts'

export function privacyService(router: ConnectRouter, core: Core): void {
  function nameOf(visitor: Visitor | undefined, context: HandlerContext): Promise<VisitorName> {
    switch (visitor?.by.case) {
      case 'sessionId':
        return visitorOfSession(core, visitor.by.value, callerOf(context).workspaceId)
      case 'subject': {
        const { workspaceId, externalSubject } = visitor.by.value
        return visitorOfSubject(core, requiredWorkspace(context, workspaceId), externalSubject)
      }
      default:
        throw invalid('/visitor', 'required')
    }
  }

  router.service(PrivacyService, {
    async *exportVisitor({ visitor }, context) {
      for await (const line of exportVisitor(core, await nameOf(visitor, context))) yield { line }
    },

    async eraseVisitor({ visitor }, context) {
      const name = await nameOf(visitor, context)
      return { erasure: toErasure(await eraseVisitor(core, name, callerOf(context).subject)) }
    },

    async getErasure({ erasureId }, context) {
      return { erasure: toErasure(await findErasure(core, erasureId, callerOf(context).workspaceId)) }
    },
  })
}

const states = {
  ending: ErasureState.RUNNING,
  removing: ErasureState.RUNNING,
  removed: ErasureState.REMOVED,
  finished: ErasureState.FINISHED,
} as const

function toErasure({ stage, requestedAt, finishedAt, ...rest }: Erasure) {
  return {
    ...rest,
    state: states[stage],
    requestedAt: timestampFromDate(requestedAt),
    finishedAt: finishedAt && timestampFromDate(finishedAt),
  }
}
