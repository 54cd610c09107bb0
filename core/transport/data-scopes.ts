import { type DescField, type DescMessage, type DescMethod, getOption, type Message } from '@bufbuild/protobuf'
import { isReflectList, isReflectMap, type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import type { Interceptor } from '@connectrpc/connect'
import { always_shown, data_scope, scope } from '#proto/access/v1/access_pb.js'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import { callerIn } from './caller.ts'

/** Returns the scope that the data of a message type needs, or an empty string. */
const dataScopeOf = (type: DescMessage): string => getOption(type, data_scope)

const isAlwaysShown = (field: DescField): boolean => getOption(field, always_shown)

/** Returns the types of messages that a message of this type can contain, and the type itself. */
export function typesIn(type: DescMessage, found = new Set<DescMessage>()): Set<DescMessage> {
  if (found.has(type)) return found
  found.add(type)
  for (const { message } of type.fields) if (message) typesIn(message, found)
  return found
}

/**
 * Removes data from the responses of operators' methods that the caller's scopes do not cover. The
 * protos declare the scope of each kind of data.
 */
export function hideDataInterceptor(): Interceptor {
  /** Scopes by method. Cached, because each read of a descriptor's option decodes it again. */
  const needed = new Map<DescMethod, string[]>()

  /** Returns the scopes of all data that a response of the method can contain. */
  function scopesOf(method: DescMethod) {
    const known = needed.get(method)
    if (known) return known
    const isForOperators = operatorScopes.has(getOption(method, scope))
    const scopes = isForOperators ? [...typesIn(method.output)].map(dataScopeOf).filter(Boolean) : []
    const distinct = [...new Set(scopes)]
    needed.set(method, distinct)
    return distinct
  }

  return (next) => async (request) => {
    const response = await next(request)
    const { method } = response
    const scopes = callerIn(request.contextValues)?.scopes
    const missing = scopesOf(method).filter((each) => !scopes?.has(each))
    if (missing.length === 0) return response
    const hidden = new Set(missing)
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

/** Clears the fields with data of the hidden scopes, at every depth. */
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

/** Returns the messages in a field with one message, a list or a map. */
function messagesOf(value: unknown) {
  if (isReflectMap(value)) return [...value.values()] as ReflectMessage[]
  return (isReflectList(value) ? [...value] : [value]) as ReflectMessage[]
}
