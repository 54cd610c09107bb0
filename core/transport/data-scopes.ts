import { type DescField, type DescMessage, getOption, type Message } from '@bufbuild/protobuf'
import { isReflectList, isReflectMap, type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import type { Interceptor } from '@connectrpc/connect'
import { always_shown, data_scope, scope } from '#proto/access/v1/access_pb.js'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import { callerIn, perMethod } from './caller.ts'

const dataScopeOf = (type: DescMessage): string => getOption(type, data_scope)

const isAlwaysShown = (field: DescField): boolean => getOption(field, always_shown)

export function typesIn(type: DescMessage, found = new Set<DescMessage>()): Set<DescMessage> {
  if (found.has(type)) return found
  found.add(type)
  for (const { message } of type.fields) if (message) typesIn(message, found)
  return found
}

/**
 * Removes data from responses of operators' methods that the caller's scopes do not cover, as the protos
 * declare them.
 */
export function hideDataInterceptor(): Interceptor {
  const scopesOf = perMethod((method) => {
    const isForOperators = operatorScopes.has(getOption(method, scope))
    return new Set(isForOperators ? [...typesIn(method.output)].map(dataScopeOf).filter(Boolean) : [])
  })

  return (next) => async (request) => {
    const response = await next(request)
    const { method } = response
    const scopes = callerIn(request.contextValues)?.scopes
    const hidden = new Set([...scopesOf(method)].filter((each) => !scopes?.has(each)))
    if (hidden.size === 0) return response
    if (!response.stream) {
      hideData(reflect(method.output, response.message, false), hidden)
      return response
    }
    return { ...response, message: hideEach(method.output, response.message, hidden) }
  }
}

async function* hideEach<M extends Message>(type: DescMessage, messages: AsyncIterable<M>, hidden: Set<string>) {
  for await (const message of messages) {
    hideData(reflect(type, message, false), hidden)
    yield message
  }
}

function hideData(message: ReflectMessage, hidden: Set<string>) {
  for (const field of message.fields) {
    if (!field.message || !message.isSet(field)) continue
    const type = field.message
    if (![...typesIn(type)].some((each) => hidden.has(dataScopeOf(each)))) continue
    const isHidden = hidden.has(dataScopeOf(type))
    if (isHidden && !type.fields.some(isAlwaysShown)) {
      message.clear(field)
      continue
    }
    for (const part of messagesOf(message.get(field))) {
      if (isHidden) for (const each of type.fields) if (!isAlwaysShown(each)) part.clear(each)
      hideData(part, hidden)
    }
  }
}

function messagesOf(value: unknown) {
  if (isReflectMap(value)) return [...value.values()] as ReflectMessage[]
  return (isReflectList(value) ? [...value] : [value]) as ReflectMessage[]
}
