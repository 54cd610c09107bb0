import type { ConnectRouter, HandlerContext } from '@connectrpc/connect'
import { ErasureSchema, PrivacyService, type Visitor } from '#proto/privacy/v1/privacy_pb.js'
import type { Core } from '../core.ts'
import { invalid } from '../errors.ts'
import { eraseVisitor, findErasure } from '../privacy/erasures.ts'
import type { Erasure } from '../privacy/model.ts'
import { exportVisitor, visitorOfSession, visitorOfSubject } from '../privacy/visitor-data.ts'
import { callerOf, callerWorkspace, requiredWorkspace } from '../transport/caller.ts'
import { toProto } from './proto-values.ts'

export function privacyService(router: ConnectRouter, core: Core) {
  function nameOf(visitor: Visitor | undefined, context: HandlerContext) {
    switch (visitor?.by.case) {
      case 'sessionId':
        return visitorOfSession(core, visitor.by.value, callerWorkspace(context))
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
      return { erasure: toErasure(await findErasure(core, erasureId, callerWorkspace(context))) }
    },
  })
}

const states = { ending: 'running', removing: 'running', removed: 'removed', finished: 'finished' } as const

const toErasure = (erasure: Erasure) => toProto(ErasureSchema, { ...erasure, state: states[erasure.stage] })
