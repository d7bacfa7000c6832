/**
 * Rules about tests: every one runs, and shows something. Each rule answers with what it found in one file.
 */
import ts from 'typescript';
import { bare } from './fixed-texts.js';
import { everyNode, where } from './source.js';

const RUNNERS = ['it', 'test', 'describe'];
const SWITCHES = ['only', 'skip', 'todo', 'failing', 'fails', 'skipIf', 'runIf'];
const SHORT_FORMS = ['fit', 'fdescribe', 'xit', 'xtest', 'xdescribe'];

/** Tests that are focused, skipped or planned, in whatever way it is written. */
export function switchedTests(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  everyNode(file, (node) => {
    const found = switchOf(node) ?? aliasOf(node) ?? conditionOf(node);
    if (found === undefined || isReportOfSkips(node)) return;
    problems.push(`${where(file, node)}: ${found}; every test runs, or is deleted`);
  });
  return problems;
}

/**
 * Tests in which nothing can fail but by throwing: no `expect` outside of an `if`, and no waiting for something (which
 * fails in the end), neither in the test, nor in a function of its file; a helper of the tests is taken to expect something.
 */
export function idleTests(file: ts.SourceFile): string[] {
  const asserting = assertingFunctions(file);
  return testBodies(file)
    .filter((body) => !asserts(body, asserting))
    .map((body) => `${where(file, body)}: this test expects nothing`);
}

/** Tests that may end before they have expected anything, and descriptions that may end before their tests. */
export function earlyEnds(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  for (const body of [...testBodies(file), ...testBodies(file, /^describe\b/)]) {
    if (!ts.isBlock(body)) continue;
    for (const statement of body.statements) {
      if (/\bexpect/.test(statement.getText(file))) break;
      if (ts.isIfStatement(statement) && endsIn(statement.thenStatement)) {
        problems.push(`${where(file, statement)}: a test that ends here shows nothing; say so in its title`);
      }
    }
  }
  return problems;
}

function switchOf(node: ts.Node): string | undefined {
  if (ts.isPropertyAccessExpression(node) && SWITCHES.includes(node.name.text) && isRunner(node.expression)) {
    return node.getText();
  }
  if (ts.isElementAccessExpression(node) && isRunner(node.expression)) return node.getText();
  if (ts.isVariableDeclaration(node) && ts.isObjectBindingPattern(node.name) && node.initializer) {
    const names = node.name.elements.map(({ propertyName, name }) => (propertyName ?? name).getText());
    if (isRunner(node.initializer) && names.some((name) => SWITCHES.includes(name))) return node.getText();
  }
  if (ts.isIdentifier(node) && SHORT_FORMS.includes(node.text) && !isNameOfItsOwn(node)) return node.text;
  return undefined;
}

/** `const other = it`, and `import { it as other }`: what that one does is not seen. */
function aliasOf(node: ts.Node): string | undefined {
  const isAlias =
    (ts.isVariableDeclaration(node) && node.initializer !== undefined && isRunner(node.initializer)) ||
    (ts.isImportSpecifier(node) && RUNNERS.includes(node.propertyName?.text ?? ''));
  return isAlias ? node.getText() : undefined;
}

/** `it`, `it.each`, `(it)`, `globalThis.it`. */
function isRunner(given: ts.Expression): boolean {
  const part = bare(given);
  if (ts.isIdentifier(part)) return RUNNERS.includes(part.text);
  if (!ts.isPropertyAccessExpression(part)) return false;
  const isGlobal = ['globalThis', 'global'].includes(part.expression.getText());
  return isGlobal ? RUNNERS.includes(part.name.text) : isRunner(part.expression);
}

/** A member of something else, or of an object that is written here. */
function isNameOfItsOwn(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent) && parent.name === node)
    return !['globalThis', 'global'].includes(parent.expression.getText());
  return ts.isPropertyAssignment(parent) && parent.name === node;
}

/** Tests that are there on a condition only: whoever does not meet it is not told that they were left out. */
function conditionOf(node: ts.Node): string | undefined {
  if (!ts.isCallExpression(node) || ts.isCallExpression(node.parent) || !startsWithRunner(node))
    return undefined;
  const condition = ts.findAncestor(node.parent, (above) => {
    if (ts.isFunctionLike(above)) return 'quit';
    return (
      ts.isIfStatement(above) ||
      ts.isSwitchStatement(above) ||
      ts.isConditionalExpression(above) ||
      isShortcut(above)
    );
  });
  return condition?.getText().split('\n')[0];
}

/** `it('x', f)`, and `it.each(table)('x', f)`. */
function startsWithRunner({ expression }: ts.CallExpression): boolean {
  const called = ts.isCallExpression(expression) ? expression.expression : expression;
  return isRunner(called);
}

function isShortcut(node: ts.Node): boolean {
  const { AmpersandAmpersandToken, BarBarToken, QuestionQuestionToken } = ts.SyntaxKind;
  return (
    ts.isBinaryExpression(node) &&
    [AmpersandAmpersandToken, BarBarToken, QuestionQuestionToken].some(
      (kind) => node.operatorToken.kind === kind,
    )
  );
}

/** A contract suite is given the function by which it reports a case that a backend cannot have. */
function isReportOfSkips(node: ts.Node): boolean {
  return ts.isPropertyAssignment(node.parent) && node.parent.name.getText() === 'skip';
}

/** The functions that are handed to `it` and `test`, also by way of `.each`. */
function testBodies(file: ts.SourceFile, runner = /^(it|test)\b/): ts.ConciseBody[] {
  const bodies: ts.ConciseBody[] = [];
  everyNode(file, (node) => {
    if (!ts.isCallExpression(node) || !runner.test(node.expression.getText())) return;
    const last = node.arguments.find((part) => ts.isArrowFunction(part) || ts.isFunctionExpression(part));
    const body = last?.body ?? namedBody(file, node.arguments[1]);
    if (body !== undefined) bodies.push(body);
  });
  return bodies;
}

/** The body of a function of the same file that a test is handed by name. */
function namedBody(file: ts.SourceFile, name: ts.Expression | undefined): ts.ConciseBody | undefined {
  if (name === undefined || !ts.isIdentifier(name)) return undefined;
  let body: ts.ConciseBody | undefined;
  everyNode(file, (node) => {
    if (ts.isFunctionDeclaration(node) && node.name?.text === name.text) body ??= node.body;
    if (!ts.isVariableDeclaration(node) || node.name.getText() !== name.text) return;
    const value = node.initializer && bare(node.initializer);
    if (value && (ts.isArrowFunction(value) || ts.isFunctionExpression(value))) body ??= value.body;
  });
  return body;
}

/** Names of the functions of a file in which something is expected, or which call one. */
function assertingFunctions(file: ts.SourceFile): Set<string> {
  const functions = new Map<string, ts.Node>();
  everyNode(file, (node) => {
    if (ts.isFunctionDeclaration(node) && node.name && node.body) functions.set(node.name.text, node.body);
    if (ts.isMethodDeclaration(node) && node.body) functions.set(node.name.getText(), node.body);
    if (ts.isVariableDeclaration(node) && node.initializer && ts.isArrowFunction(node.initializer)) {
      functions.set(node.name.getText(), node.initializer.body);
    }
  });
  const found = new Set(importedHelpers(file));
  for (let before = -1; before < found.size;) {
    before = found.size;
    for (const [name, body] of functions) if (asserts(body, found)) found.add(name);
  }
  return found;
}

function importedHelpers(file: ts.SourceFile): string[] {
  return file.statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) || !isHelper(statement.moduleSpecifier.getText())) return [];
    const names = statement.importClause?.namedBindings;
    return names && ts.isNamedImports(names) ? names.elements.map(({ name }) => name.text) : [];
  });
}

/** A file beside the tests. */
function isHelper(specifier: string): boolean {
  return /^'\.\.?\//.test(specifier) && !specifier.includes('/src/');
}

function asserts(body: ts.Node, asserting: ReadonlySet<string>): boolean {
  let found = false;
  const look = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && (isAssertion(node) || asserting.has(node.text))) found = true;
    // What is expected on a condition only may never be.
    if (ts.isIfStatement(node) && !(node.elseStatement && asserts(node.elseStatement, asserting))) {
      look(node.expression);
      return;
    }
    if (!found) ts.forEachChild(node, look);
  };
  look(body);
  return found;
}

/** By its name; of Jest's own only what compares something. */
function isAssertion(name: ts.Identifier): boolean {
  const { parent } = name;
  if (name.text !== 'expect') return /^(expect|assert(?!ions$)|until|seen)/.test(name.text);
  if (ts.isPropertyAccessExpression(parent)) return false;
  return (
    !ts.isCallExpression(parent) || parent.expression !== name || !ts.isExpressionStatement(parent.parent)
  );
}

function endsIn(statement: ts.Statement): boolean {
  return (
    ts.isReturnStatement(statement) ||
    (ts.isBlock(statement) && statement.statements.some(ts.isReturnStatement))
  );
}
