/**
 * What a page of documentation consists of, as far as tests look at it: fenced blocks with the comments above them,
 * headings, and links. A line scanner is enough, because Prettier holds the form of every page.
 */
import { dirname, join, normalize } from 'node:path';

/** A page, by its path from the root of the repository. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

/** A fenced block. */
export interface Block {
  readonly page: string;
  /** Line of the page on which the fence opens, from 1. */
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** The HTML comments directly above the fence, from top to bottom. */
  readonly comments: readonly string[];
}

/** A link to something that is not a code sample. */
export interface Link {
  readonly page: string;
  readonly line: number;
  readonly target: string;
}

const FENCE = /^(\s*)(`{3,}|~{3,})(.*)$/;
const COMMENT = /^\s*<!--\s*(.*?)\s*-->\s*$/;

/** Every fenced block of a page. */
export function blocksOf({ path, text }: Page): Block[] {
  const blocks: Block[] = [];
  const lines = text.split('\n');
  for (let index = 0; index < lines.length; index += 1) {
    const [, indent, fence, info] = FENCE.exec(lines[index]!) ?? [];
    if (indent === undefined || fence === undefined) continue;
    const end = closing(lines, index, fence);
    const code = lines
      .slice(index + 1, end)
      .map((line) => line.slice(Math.min(indent.length, leading(line))));
    const language = info!.trim().split(/\s/)[0] ?? '';
    const comments = commentsAbove(lines, index);
    blocks.push({ page: path, line: index + 1, language, code: `${code.join('\n')}\n`, comments });
    index = end;
  }
  return blocks;
}

/** The anchors that the headings of a page make, as GitHub names them. */
export function anchorsOf(page: Page): string[] {
  const seen = new Map<string, number>();
  return prose(page).flatMap(({ text }) => {
    const [, heading] = /^#{1,6}\s+(.+?)\s*#*$/.exec(text) ?? [];
    if (heading === undefined) return [];
    const slug = slugOf(heading);
    const before = seen.get(slug) ?? 0;
    seen.set(slug, before + 1);
    return [before === 0 ? slug : `${slug}-${before}`];
  });
}

/** The texts of the headings of one level. */
export function headingsOf(page: Page, level: number): string[] {
  const pattern = new RegExp(`^#{${level}}\\s+(.+?)\\s*#*$`);
  return prose(page).flatMap(({ text }) => pattern.exec(text)?.[1] ?? []);
}

/** One entry for each heading of a page, in order: its level, and how many rows of tables (heads too) are below it. */
export function outlineOf(page: Page): { readonly level: number; readonly rows: number }[] {
  const outline: { level: number; rows: number }[] = [];
  for (const { text } of prose(page)) {
    const level = /^(#{1,6})\s/.exec(text)?.[1]!.length;
    const last = outline.at(-1);
    if (level !== undefined) outline.push({ level, rows: 0 });
    else if (last !== undefined && text.startsWith('|')) last.rows += 1;
  }
  return outline;
}

/** Every link and image of a page, outside of code. */
export function linksOf(page: Page): Link[] {
  return prose(page).flatMap(({ text, line }) => {
    const inline = text.replace(/`[^`]*`/g, '');
    return [...inline.matchAll(/\]\(([^()\s]+)(?:\s+"[^"]*")?\)/g)].map((match) => ({
      page: page.path,
      line,
      target: match[1]!,
    }));
  });
}

/** The path from the root of the repository to which a relative link of a page leads. */
export function targetOf(page: string, target: string): string {
  const path = target.replace(/#.*$/, '');
  return path === ''
    ? page
    : normalize(join(dirname(page), path))
        .replaceAll('\\', '/')
        .replace(/\/$/, '');
}

/** The lines of a page outside of fenced blocks. */
function prose({ text }: Page): { readonly text: string; readonly line: number }[] {
  const lines = text.split('\n');
  const kept: { readonly text: string; readonly line: number }[] = [];
  for (let index = 0; index < lines.length; index += 1) {
    const [, , fence] = FENCE.exec(lines[index]!) ?? [];
    if (fence !== undefined) index = closing(lines, index, fence);
    else kept.push({ text: lines[index]!, line: index + 1 });
  }
  return kept;
}

function closing(lines: readonly string[], open: number, fence: string): number {
  for (let index = open + 1; index < lines.length; index += 1) {
    if (lines[index]!.trim().startsWith(fence)) return index;
  }
  return lines.length;
}

function commentsAbove(lines: readonly string[], fence: number): string[] {
  const comments: string[] = [];
  for (let index = fence - 1; index >= 0; index -= 1) {
    if (lines[index]!.trim() === '') continue;
    const [, comment] = COMMENT.exec(lines[index]!) ?? [];
    if (comment === undefined) break;
    comments.unshift(comment);
  }
  return comments;
}

function leading(line: string): number {
  return line.length - line.trimStart().length;
}

function slugOf(heading: string): string {
  const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
  return plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');
}
