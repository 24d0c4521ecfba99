# Renders the templates of a release's job as the Director and the CLI do, with
# nothing but Ruby's own ERB.
#
# It is as strict as the Director. The CLI is less so: a property below what should
# be a hash and is none counts as not set there, and is no error.
#
#   ruby render.rb JOB [JOB...] < PROPERTIES
#
# JOB is a job's directory in the release, or one that was unpacked; PROPERTIES
# is a JSON object, as a manifest has it. Prints a JSON object: what became of
# each job's templates, by job and by path. Templates that fail are told on
# stderr like the Director tells them, all of them, and nothing is printed.

require 'erb'
require 'json'
require 'ostruct'
require 'yaml'

class UnknownProperty < StandardError
  def initialize(names)
    super("Can't find property '#{names.join("', or '")}'")
  end
end

class UnknownLink < StandardError
  def initialize(name)
    super("Can't find link '#{name}'")
  end
end

class InvalidPropertyType < StandardError; end

# What a template sees.
class Context
  attr_reader :name, :index, :properties, :raw_properties, :spec

  # What `if_p` answers: an `else` that runs, or one that does not.
  Else = Struct.new(:context, :active) do
    def else
      yield if active
    end

    def else_if_p(*names, &block)
      active ? context.if_p(*names, &block) : self
    end

    def else_if_link(name, &block)
      active ? context.if_link(name, &block) : self
    end
  end

  def initialize(job, given)
    @name = job['name']
    @index = 0
    @raw_properties = {}
    # Properties that the spec does not name are not there, whatever a manifest says.
    (job['properties'] || {}).each { |name, definition| take(given, name, (definition || {})['default']) }
    @properties = open_struct(@raw_properties)
    @spec = open_struct('name' => @name, 'index' => 0, 'bootstrap' => true, 'deployment' => 'bosh', 'az' => 'z1',
                        'id' => 'an-id', 'ip' => '10.0.0.6', 'address' => '10.0.0.6',
                        'networks' => { 'default' => { 'ip' => '10.0.0.6' } },
                        'job' => { 'name' => @name }, 'properties' => @raw_properties)
  end

  def p(*arguments)
    names = Array(arguments[0])
    found = names.lazy.map { |name| find(name) }.find { |value| !value.nil? }
    return found unless found.nil?
    return arguments[1] if arguments.length == 2

    raise UnknownProperty.new(names)
  end

  def if_p(*names)
    values = names.map { |name| find(name) }
    return Else.new(self, true) if values.any?(&:nil?)

    yield(*values)
    Else.new(self, false)
  end

  def link(name)
    raise UnknownLink.new(name)
  end

  def if_link(_name)
    Else.new(self, true)
  end

  def own_binding
    binding
  end

  private

  def find(name)
    name.split('.').reduce(@raw_properties) { |value, key| value.nil? ? nil : value[key] }
  end

  def take(given, name, default)
    *above, last = name.split('.')
    value = (above + [last]).reduce(given) do |found, key|
      break nil if found.nil?
      raise InvalidPropertyType, "Property '#{name}' expects a hash, but received '#{found.class}'" unless found.is_a?(Hash)

      found[key]
    end
    place = above.reduce(@raw_properties) { |hash, key| hash[key] ||= {} }
    place[last] = value.nil? ? default : value
  end

  def open_struct(value)
    case value
    when Hash then OpenStruct.new(value.transform_values { |item| open_struct(item) })
    when Array then value.map { |item| open_struct(item) }
    else value
    end
  end
end

def render(directory, given)
  spec = %w[job.MF spec].map { |file| File.join(directory, file) }.find { |file| File.file?(file) }
  job = YAML.safe_load(File.read(spec))
  templates = (job['templates'] || {}).map { |from, to| [File.join(directory, 'templates', from), to] }
  templates << [File.join(directory, 'monit'), 'monit']
  errors = []
  files = templates.map do |from, to|
    # Each template is rendered in a context of its own: what one does to it, no other sees.
    erb = ERB.new(File.read(from), trim_mode: '-')
    erb.filename = from
    [to, erb.result(Context.new(job, Marshal.load(Marshal.dump(given))).own_binding)]
  rescue StandardError, SyntaxError => error
    place = error.backtrace.find { |line| line.start_with?(from) }
    errors << "Error filling in template '#{File.basename(from)}' for #{job['name']}/0 " \
              "(line #{place ? place.split(':')[1] : 'unknown'}: #{error.message})"
    nil
  end
  abort errors.join("\n") unless errors.empty?
  [job['name'], files.to_h]
end

given = JSON.parse($stdin.read)
puts JSON.generate(ARGV.to_h { |directory| render(directory, given) })
