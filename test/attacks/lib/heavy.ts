// Requests whose answers are large. Each prepares what it asks for.

import type { LoadRequest } from './load-process.ts'
import type { Tenant } from './service.ts'

export interface HeavyRead {
  what: string
  /** Answers that 64 connections get whole in some seconds: a tenth of what was seen, or 0 when none must come. */
  answers_least: number
  prepare(attacker: Tenant): Promise<LoadRequest>
}

const page_entries = 200
const metadata_characters = 65_000
const messages = 60
const message_characters = 1_048_000

/** The script of the API reference, which is the largest public file. */
export const reference: HeavyRead = {
  what: 'the API reference',
  answers_least: 600,
  async prepare({ url }) {
    const page = await (await fetch(`${url}/docs/reference`)).text()
    const script = /swagger-ui-[\d.]+\.js/.exec(page)?.[0]
    if (script === undefined) throw new Error('the API reference names no script swagger-ui-<version>.js')
    return { method: 'GET', path: `/docs/${script}`, headers: {} }
  },
}

export const audit_page: HeavyRead = {
  what: 'audit pages',
  answers_least: 140,
  async prepare(attacker) {
    await fillAuditLog(attacker)
    return attacker.request('GET', `/v1/audit?limit=${page_entries}`)
  },
}

export const mcp_audit_page: HeavyRead = {
  what: 'audit pages by MCP',
  answers_least: 45,
  async prepare(attacker) {
    await fillAuditLog(attacker)
    const call = { name: 'audit_list', arguments: { limit: page_entries } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })
    const request = attacker.request('POST', '/mcp', body)
    return { ...request, headers: { ...request.headers, accept: 'application/json, text/event-stream' } }
  },
}

export const inbox_page: HeavyRead = {
  what: 'inbox pages',
  answers_least: 70,
  async prepare(attacker) {
    return attacker.request('GET', `/api/webhook/${await fullInbox(attacker)}/messages`)
  },
}

export const inbox_detail: HeavyRead = {
  what: 'an inbox with its messages',
  // Of 120 MB each: with many at once none comes to its end in some seconds.
  answers_least: 0,
  async prepare(attacker) {
    return attacker.request('GET', `/api/webhook/${await fullInbox(attacker)}`)
  },
}

export const large_value: HeavyRead = {
  what: 'a large value',
  answers_least: 1_000,
  async prepare(attacker) {
    await attacker.ask('PUT', '/v1/kv/ns/large', { value: 'z'.repeat(262_000) })
    return attacker.request('GET', '/v1/kv/ns/large')
  },
}

async function fillAuditLog(attacker: Tenant): Promise<void> {
  const metadata = { text: 'x'.repeat(metadata_characters) }
  for (let i = 0; i < page_entries; i++) await attacker.ask('POST', '/v1/audit', { action: 'x', metadata })
}

export interface Inbox {
  id: string
  token: string
}

export async function newInbox(attacker: Tenant): Promise<Inbox> {
  return (await attacker.ask<{ data: Inbox }>('POST', '/api/webhook', {})).data
}

async function fullInbox(attacker: Tenant): Promise<string> {
  const { id, token } = await newInbox(attacker)
  const body = 'y'.repeat(message_characters)
  for (let i = 0; i < messages; i++) {
    const headers = { 'content-type': 'text/plain' }
    const answer = await fetch(`${attacker.url}/hook/${token}`, { method: 'POST', headers, body })
    await answer.text()
    if (!answer.ok) throw new Error(`the inbox answered ${answer.status}`)
  }
  return id
}
